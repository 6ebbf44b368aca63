import { useNode, useServer } from "../../api/queries";
import type { Node } from "../../api/types";
import { Async } from "../../components/Async";
import { Badge } from "../../components/Badge";
import { Card } from "../../components/Card";
import { Command } from "../../components/Command";
import { Facts, type Fact } from "../../components/Facts";
import { When } from "../../components/When";
import { bytes, number } from "../../format/number";
import { unix } from "../../format/time";
import { nodeTone } from "../../format/tone";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";
import { DeviceTable } from "./DeviceTable";
import { NodeActions } from "./NodeActions";
import "./NodePanel.css";

/** One node beside the map: its state, its devices, its jobs, its owner. */
export function NodePanel({ name, onClose }: { name: string; onClose: () => void }) {
  const node = useNode(name);
  return (
    <aside className="node-panel" aria-label={`Node ${name}`}>
      <Card title={name} aside={<button type="button" className="link-button" onClick={onClose} aria-label="Close the node">Close</button>}>
        <Async query={node}>{(data) => <NodeDetails node={data} />}</Async>
      </Card>
    </aside>
  );
}

function NodeDetails({ node }: { node: Node }) {
  const admin = useServer().data?.you.admin ?? false;
  const facts: Fact[] = [
    ["state", <Badge tone={nodeTone(node.state)} key="state">{node.state}</Badge>],
    ["why", node.why],
    ["by", node.by && <>{node.by} <When at={unix(node.since)} /></>],
    ["fenced", node.fences?.length ? node.fences.map((fence) => `${fence.check}: ${fence.evidence}`).join("; ") : ""],
    ["hand-over", node.handover],
    ["owner", node.owner && `pool ${node.owner}`],
    ["pool", <Link to={addresses.pool(node.pool)} key="pool">{node.pool}</Link>],
    ["place", node.path?.join(" / ")],
    ["partitions", node.partitions?.join(", ")],
    ["features", node.features?.join(", ")],
    ["CPUs", `${number(node.cpus_used)} of ${number(node.cpus)} used`],
    ["memory", `${bytes(node.memory_used)} of ${bytes(node.memory)} used`],
    ["machine", node.hosts?.join(", ")],
    ["load", node.system && number(node.system.load)],
    ["jobs", node.jobs?.length ? node.jobs.map((job, i) => <span key={job}>{i > 0 && ", "}<Link to={addresses.job(job)}>{job}</Link></span>) : ""],
  ];
  return (
    <div className="node-details">
      {admin && <NodeActions node={node} />}
      <Facts facts={facts} />
      {(node.devices?.length ?? 0) > 0 && <DeviceTable devices={node.devices ?? []} />}
      <Command text={`cox node show ${node.name}`} />
    </div>
  );
}
