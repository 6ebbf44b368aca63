import type { Change, Job, ServerInfo } from "../../../api/types";

// What a reader may do with a job, by the table of rights (docs/reference/api-routes.md) and the
// job's state. The server decides; this only leaves out what it would refuse.

export interface JobAction {
  verb: Change["verb"];
  label: string;
  command: string; // of cox, that does the same
  question: string; // what the confirmation says
  danger: boolean;
}

/** The actions that make sense now, the likely one first. */
export function jobActions(job: Job, you: ServerInfo["you"]): JobAction[] {
  const owner = job.spec.owner.user === you.name;
  if (!owner && !you.admin) return [];
  const held = job.flags?.includes("HELD") ?? false;
  const actions: JobAction[] = [];
  const add = (verb: JobAction["verb"], label: string, question: string, danger = false) => {
    actions.push({ verb, label, question, command: `cox ${verb} ${job.name}`, danger });
  };
  if (job.state === "PENDING") {
    if (held) add("release", "Release", "It may start as soon as there is room.");
    else add("hold", "Hold", "It waits until it is released.");
  }
  if (you.admin && job.state === "RUNNING") add("suspend", "Suspend", "Its processes stop; it keeps its nodes and devices.");
  if (you.admin && job.state === "SUSPENDED") add("resume", "Resume", "Its processes continue.");
  if (job.state !== "PENDING") {
    const question = job.ended ? "It runs again under the same number." : "It is ended and waits again under the same number.";
    add("requeue", job.ended ? "Run again" : "Requeue", question, !job.ended);
  }
  if (!job.ended) {
    const question = job.state === "PENDING" ? "It leaves the queue." : "Its processes get SIGTERM, and SIGKILL when the grace time is over.";
    add("cancel", "Cancel", question, true);
  }
  return actions;
}
