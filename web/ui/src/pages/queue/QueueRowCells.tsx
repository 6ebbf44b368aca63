import type { QueueRow } from "../../api/columns";
import { Badge } from "../../components/Badge";
import { number } from "../../format/number";
import { duration, fullTime } from "../../format/time";
import { jobTone } from "../../format/tone";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";

/** The cells of one job. */
export function QueueRowCells({ row, now }: { row: QueueRow; now: number }) {
  return (
    <div className="queue-row" role="presentation">
      <span role="gridcell" className="queue-state"><Badge tone={jobTone(row.state)}>{row.flags.includes("HELD") ? "HELD" : row.state}</Badge></span>
      <span role="gridcell" className="queue-job">
        <Link to={addresses.job(row.name.replace(/_\[.*$/, ""))} tabIndex={-1}>{row.name}</Link> {row.jobName}
      </span>
      <span role="gridcell" className="queue-user" title={row.account === "" ? row.user : `${row.user}, account ${row.account}`}>
        {row.user}
        {row.account !== "" && row.account !== row.user && <span className="faint"> {row.account}</span>}
      </span>
      <span role="gridcell" className="queue-where" title={row.partition}>{row.pool}</span>
      <span role="gridcell" className="queue-nodes">{number(row.nodes)}<span className="queue-unit">{row.nodes === 1 ? " node" : " nodes"}</span></span>
      <span role="gridcell" className="queue-gpus">{row.gpus > 0 && <>{number(row.gpus)}<span className="queue-unit">{row.gpus === 1 ? " GPU" : " GPUs"}</span></>}</span>
      <span role="gridcell" className="queue-time" title={times(row)}>{spent(row, now)}</span>
      <span role="gridcell" className="queue-limit">{row.timeLimit > 0 ? duration(row.timeLimit) : ""}</span>
      <span role="gridcell" className="queue-why" title={row.reasonText || row.nodeList}>{where(row)}</span>
    </div>
  );
}

function spent(row: QueueRow, now: number): string {
  if (row.started > 0) return duration((row.ended || now) - row.started);
  return duration((row.ended || now) - row.submitted);
}

function times(row: QueueRow): string {
  const parts = [`submitted ${fullTime(row.submitted)}`];
  if (row.started > 0) parts.push(`started ${fullTime(row.started)}`);
  if (row.ended > 0) parts.push(`ended ${fullTime(row.ended)}`);
  return parts.join("\n");
}

function where(row: QueueRow): string {
  if (row.state === "PENDING" && row.reason !== "") return `${row.reason}: ${row.reasonText}`;
  return [row.nodeList, ...row.flags].filter(Boolean).join("  ");
}
