import type { Node } from "../../api/types";
import { count } from "../../format/number";

/** A node in a few lines, for a tooltip. */
export function nodeText(node: Node): string {
  const devices = node.devices ?? [];
  const used = devices.filter((device) => device.jobs?.length).length;
  const lines = [`${node.name}: ${node.state}${node.why ? `, ${node.why}` : ""}`];
  if (devices.length > 0) lines.push(`${used} of ${count(devices.length, "device")} used`);
  for (const counted of node.counted ?? []) lines.push(`${counted.used} of ${counted.all} ${counted.name} used`);
  lines.push(`${node.cpus_used} of ${count(node.cpus, "CPU")} used`);
  if (node.jobs?.length) lines.push(`${node.jobs.length === 1 ? "job" : "jobs"} ${node.jobs.slice(0, 8).join(", ")}${node.jobs.length > 8 ? " …" : ""}`);
  if (node.handover) lines.push(`hand-over ${node.handover}`);
  return lines.join("\n");
}
