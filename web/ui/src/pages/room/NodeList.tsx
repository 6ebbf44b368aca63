import type { Node } from "../../api/types";
import { Badge } from "../../components/Badge";
import { VirtualList } from "../../components/VirtualList";
import { bytes, number } from "../../format/number";
import { nodeTone } from "../../format/tone";
import "./NodeList.css";

const headers: [className: string, text: string][] = [
  ["", "Node"], ["", "State"], ["node-wide", "Pool"], ["number", "Devices"], ["number node-wide", "CPUs"], ["number node-wide", "Memory"], ["node-wide", "Jobs, or why"],
];

/** The nodes as a list: what the map shows, in words. */
export function NodeList({ nodes, onOpen }: { nodes: readonly Node[]; onOpen: (node: Node) => void }) {
  return (
    <VirtualList
      label="Nodes"
      count={nodes.length}
      itemAt={(index) => nodes[index]}
      keyOf={(node) => `${node.pool}/${node.name}`}
      rowHeight={36}
      header={<div className="node-row node-header" role="row">{headers.map(([name, text]) => <span role="columnheader" className={name} key={text}>{text}</span>)}</div>}
      row={(node) => <NodeCells node={node} />}
      onOpen={onOpen}
    />
  );
}

function NodeCells({ node }: { node: Node }) {
  const devices = node.devices ?? [];
  const counted = node.counted ?? [];
  const all = devices.length + counted.reduce((sum, each) => sum + each.all, 0);
  const used = devices.filter((device) => device.jobs?.length).length + counted.reduce((sum, each) => sum + each.used, 0);
  return (
    <div className="node-row" role="presentation">
      <span role="gridcell">{node.name}</span>
      <span role="gridcell"><Badge tone={node.fences?.length ? "bad" : nodeTone(node.state)}>{node.state}</Badge></span>
      <span role="gridcell" className="node-wide">{node.pool}</span>
      <span role="gridcell" className="number">{all > 0 && `${used}/${all}`}</span>
      <span role="gridcell" className="number node-wide">{number(node.cpus_used)}/{number(node.cpus)}</span>
      <span role="gridcell" className="number node-wide">{bytes(node.memory_used)}/{bytes(node.memory)}</span>
      <span role="gridcell" className="node-wide soft">{node.why ?? node.jobs?.join(", ")}</span>
    </div>
  );
}
