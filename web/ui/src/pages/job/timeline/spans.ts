import type { Job, Task } from "../../../api/types";
import { hostList } from "../../../format/hosts";
import { exitText } from "../../../format/request";
import { unix } from "../../../format/time";
import type { Span } from "../../../components/TimeTrack";
import { jobTone, type Tone } from "../../../format/tone";
import { rankName } from "../ranks";

export interface TimelineRow {
  label: string;
  detail?: string;
  spans: Span[];
}

const most = 64; // rows of ranks; more are one row for each node

/** The states of a job over its life: it waits, each attempt, how each ended. */
export function jobSpans(job: Job): Span[] {
  const spans: Span[] = [];
  let waits = unix(job.submitted);
  for (const attempt of job.past ?? []) {
    const started = unix(attempt.started);
    const ended = unix(attempt.ended);
    if (started === 0) continue;
    spans.push({ from: waits, to: started, tone: "warn", text: "waited" });
    const how = attempt.cause === "exited" ? exitText(attempt.exit) : attempt.cause;
    spans.push({ from: started, to: ended, tone: attempt.failure ? "bad" : "plain", text: `attempt ${attempt.attempt}${attempt.nodes ? ` on ${attempt.nodes}` : ""}: ${how}` });
    waits = ended;
  }
  const started = unix(job.started);
  const ended = unix(job.ended);
  if (started === 0) {
    spans.push({ from: waits, to: ended, tone: "warn", text: ended > 0 ? `waited, then ${job.state}` : "waits" });
    return spans;
  }
  if (started >= waits) spans.push({ from: waits, to: started, tone: "warn", text: "waited" });
  spans.push({ from: started, to: ended, tone: jobTone(job.state), text: job.state });
  return spans.filter((span) => span.to === 0 || span.to >= span.from);
}

/** A row for each rank, or for each node of a job with many ranks, with the devices it holds. */
export function rankRows(job: Job): TimelineRow[] {
  const tasks = (job.tasks ?? []).filter((task) => unix(task.started) > 0);
  if (tasks.length <= most) {
    return [...tasks]
      .sort((a, b) => a.step - b.step || a.rank - b.rank)
      .map((task) => ({ label: rankName(task), detail: `${task.node} ${devicesOn(job, task.node)}`.trim(), spans: [spanOf(task)] }));
  }
  const nodes = new Map<string, Task[]>();
  for (const task of tasks) nodes.set(task.node, [...(nodes.get(task.node) ?? []), task]);
  return [...nodes].slice(0, most).map(([node, each]) => ({ label: node, detail: `${each.length} ranks ${devicesOn(job, node)}`.trim(), spans: each.map(spanOf) }));
}

function spanOf(task: Task): Span {
  const ok = task.exit.status === 0 && !task.exit.signal;
  const tone: Tone = task.running ? "info" : ok ? "good" : "bad";
  return { from: unix(task.started), to: unix(task.ended), tone, text: `rank ${rankName(task)} on ${task.node}: ${task.running ? "running" : exitText(task.exit)}` };
}

/** "GPU 0–3": the devices that a job holds on a node. */
function devicesOn(job: Job, node: string): string {
  const devices = (job.claims ?? []).filter((claim) => claim.node === node).flatMap((claim) => claim.devices ?? []);
  if (devices.length === 0) return "";
  return `GPU ${hostList(devices.map(String)).replace(/^\[|\]$/g, "")}`;
}
