import { Command } from "../../components/Command";
import { ProblemView } from "../../components/Problem";
import { SortHeader } from "../../components/SortHeader";
import { SortSelect } from "../../components/SortSelect";
import { useMedia } from "../../components/useMedia";
import { useNow } from "../../components/useNow";
import { VirtualList } from "../../components/VirtualList";
import { number } from "../../format/number";
import { addresses } from "../../router/addresses";
import { navigate } from "../../router/location";
import { NoJobs } from "./NoJobs";
import { QueueRowCells } from "./QueueRowCells";
import { commandOf, type Filter } from "./useQueueFilter";
import type { Queue } from "./useQueue";
import "./QueueTable.css";

interface QueueTableProps {
  queue: Queue;
  filter: Filter;
  hasMore?: boolean; // rows that nobody counted
}

const columns: { text: string; className: string; by?: string; first?: "down" }[] = [
  { text: "State", className: "queue-state", by: "state" },
  { text: "Job", className: "queue-job", by: "id" },
  { text: "User", className: "queue-user", by: "user" },
  { text: "Pool", className: "queue-where" },
  { text: "Nodes", className: "queue-nodes", by: "nodes", first: "down" },
  { text: "GPUs", className: "queue-gpus", by: "gpus", first: "down" },
  { text: "Time", className: "queue-time", by: "started" },
  { text: "Limit", className: "queue-limit", by: "time_limit" },
  { text: "Nodes, or why it waits", className: "queue-why", by: "reason" },
];

/** The rows of the queue. */
export function QueueTable({ queue, filter, hasMore = false }: QueueTableProps) {
  const narrow = useMedia("(max-width: 900px)");
  const now = useNow(1);
  if (queue.count === 0) {
    if (queue.error) return <ProblemView error={queue.error} />;
    return queue.loading ? null : <NoJobs filter={filter} />;
  }
  return (
    <>
      {queue.error ? <ProblemView error={queue.error} /> : null}
      {filter.view !== "ended" && <SortSelect columns={columns.filter(({ className }) => className !== "queue-limit")} sort={filter.sort} />}
      <VirtualList
        key={JSON.stringify(filter)}
        label="Jobs"
        className="queue"
        count={queue.count}
        itemAt={queue.rowAt}
        keyOf={(row) => row.name}
        rowHeight={narrow ? 70 : 36}
        header={
          <div className="queue-row queue-header" role="row">
            {columns.map((column) => <SortHeader key={column.text} sort={filter.sort} {...column} by={filter.view === "ended" ? undefined : column.by} />)}
          </div>
        }
        row={(row) => <QueueRowCells row={row} now={now} />}
        onOpen={(row) => navigate(addresses.job(row.name.replace(/_\[.*$/, "")))}
        onRange={queue.onRange}
      />
      <p className="queue-foot">
        <span className="faint">{hasMore ? `the newest ${number(queue.count)}; more as you scroll` : `${number(queue.count)} ${queue.count === 1 ? "row" : "rows"}`}</span>
        <Command text={commandOf(filter)} />
      </p>
    </>
  );
}
