import type { NodeRow } from "../../api/types";
import { Badge } from "../../components/Badge";
import { Empty } from "../../components/Empty";
import { ProblemView } from "../../components/Problem";
import { SortHeader } from "../../components/SortHeader";
import { SortSelect } from "../../components/SortSelect";
import { VirtualList } from "../../components/VirtualList";
import { bytes, number } from "../../format/number";
import { nodeTone } from "../../format/tone";
import { usePagedNodes } from "./usePagedNodes";
import "./NodeList.css";

const columns: { className: string; text: string; by?: string; first?: "down" }[] = [
  { className: "", text: "Node", by: "name" },
  { className: "", text: "State", by: "state" },
  { className: "node-wide", text: "Pool", by: "pool" },
  { className: "number", text: "Devices", by: "used", first: "down" },
  { className: "number node-wide", text: "CPUs" },
  { className: "number node-wide", text: "Memory" },
  { className: "node-wide", text: "Jobs, or why" },
];

interface NodeListProps {
  search: string;
  sort: string;
  onOpen: (name: string) => void;
}

/** The nodes as a list: what the map shows, in words. */
export function NodeList({ search, sort, onOpen }: NodeListProps) {
  const nodes = usePagedNodes(search, sort);
  if (nodes.count === 0) {
    if (nodes.error) return <ProblemView error={nodes.error} />;
    return nodes.loading ? null : <Empty><p>No node fits.</p></Empty>;
  }
  return (
    <>
      <SortSelect columns={columns} sort={sort} />
      <VirtualList
        label="Nodes"
        count={nodes.count}
        itemAt={nodes.rowAt}
        keyOf={(node) => `${node.pool}/${node.name}`}
        rowHeight={36}
        header={<div className="node-row node-header" role="row">{columns.map((column) => <SortHeader key={column.text} sort={sort} {...column} />)}</div>}
        row={(node) => <NodeCells node={node} />}
        onOpen={(node) => onOpen(node.name)}
        onRange={nodes.onRange}
      />
    </>
  );
}

function NodeCells({ node }: { node: NodeRow }) {
  const letters = node.devices ?? "";
  const counted = node.counted ?? [];
  const all = letters.length + counted.reduce((sum, each) => sum + each.all, 0);
  const used = [...letters].filter((letter) => letter === "u").length + counted.reduce((sum, each) => sum + each.used, 0);
  return (
    <div className="node-row" role="presentation">
      <span role="gridcell">{node.name}</span>
      <span role="gridcell"><Badge tone={node.fences ? "bad" : nodeTone(node.state)}>{node.state}</Badge></span>
      <span role="gridcell" className="node-wide">{node.pool}</span>
      <span role="gridcell" className="number">{all > 0 && `${used}/${all}`}</span>
      <span role="gridcell" className="number node-wide">{number(node.cpus_used)}/{number(node.cpus)}</span>
      <span role="gridcell" className="number node-wide">{bytes(node.memory_used)}/{bytes(node.memory)}</span>
      <span role="gridcell" className="node-wide soft">{node.why || node.jobs?.map((job) => `${job.job} ${job.user ?? ""}`).join(", ")}</span>
    </div>
  );
}
