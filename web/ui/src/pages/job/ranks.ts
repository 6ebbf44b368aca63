import type { Task } from "../../api/types";

/** How cox logs names a rank: 5, or 0.5 where its job has several steps; "script" is the batch script. */
export function rankName(task: Task): string {
  return task.step < 0 ? "script" : `${task.step}.${task.rank}`;
}

/** Tasks in the order in which they matter: those that failed, then those that run, then by step and rank. */
export function sortedTasks(tasks: readonly Task[]): Task[] {
  const weight = (task: Task) => (task.running ? 1 : task.exit.status !== 0 || task.exit.signal ? 0 : 2);
  return [...tasks].sort((a, b) => weight(a) - weight(b) || a.step - b.step || a.rank - b.rank);
}

/** The step and the rank in "0.5". */
export function parseRank(name: string): { step?: string; rank?: string } {
  const match = /^(\d+)\.(\d+)$/.exec(name);
  if (match) return { step: match[1] ?? "", rank: match[2] ?? "" };
  return {};
}
