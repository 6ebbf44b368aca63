import type { Job } from "../api/types";
import { bytes, count, number } from "./number";
import { hostList } from "./hosts";
import { duration } from "./time";

/** "8 nodes × 8 h100, 64 tasks, 4 h": what a job asks for. */
export function requestText(job: Job): string {
  const asks = job.asks;
  if (!asks) return "";
  const nodes = asks.nodes_max && asks.nodes_max !== asks.nodes ? `${asks.nodes}–${asks.nodes_max} nodes` : count(asks.nodes, "node");
  const parts = [];
  if (asks.gpus) {
    const type = asks.gpu_type ?? (asks.gpus === 1 ? "GPU" : "GPUs");
    parts.push(asks.nodes > 1 && asks.gpus % asks.nodes === 0 ? `${nodes} × ${asks.gpus / asks.nodes} ${type}` : `${nodes}, ${asks.gpus} ${type}`);
  } else parts.push(nodes);
  parts.push(count(asks.tasks, "task"), count(asks.cpus, "CPU"));
  if (asks.memory_bytes) parts.push(bytes(asks.memory_bytes));
  parts.push(asks.time_limit_seconds ? duration(asks.time_limit_seconds) : "no time limit");
  return parts.join(", ");
}

export interface Holdings {
  nodes: string[];
  cpus: number;
  memory: number; // bytes
  gpus: number;
}

/** What a job holds, or held last. */
export function holdingsOf(job: Job): Holdings {
  const sum: Holdings = { nodes: [], cpus: 0, memory: 0, gpus: 0 };
  for (const claim of job.claims ?? []) {
    if (!sum.nodes.includes(claim.node)) sum.nodes.push(claim.node);
    sum.cpus += claim.cpus;
    sum.memory += claim.memory;
    sum.gpus += (claim.devices?.length ?? 0) + (claim.unnamed ?? 0);
  }
  return sum;
}

/** "v[1-2]: 4 CPUs, 8 GPUs". */
export function holdingsText(job: Job): string {
  const held = holdingsOf(job);
  if (held.nodes.length === 0) return "";
  const parts = [count(held.cpus, "CPU")];
  if (held.memory > 0) parts.push(bytes(held.memory));
  if (held.gpus > 0) parts.push(count(held.gpus, "GPU"));
  return `${hostList(held.nodes)}: ${parts.join(", ")}${job.ended ? ", given back" : ""}`;
}

/** "exit 3", "signal 9". */
export function exitText(exit: { status: number; signal?: number }): string {
  return exit.signal ? `signal ${exit.signal}` : `exit ${number(exit.status)}`;
}
