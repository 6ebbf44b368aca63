import type { PlannedJob, Reservation } from "../../api/types";
import type { Span } from "../../components/TimeTrack";
import { hostList } from "../../format/hosts";
import { count } from "../../format/number";
import { unix } from "../../format/time";

export interface PlanRow {
  key: string;
  label: string;
  detail: string;
  job?: string; // its page
  spans: Span[];
}

/** A job that runs: as long as jobs like it took, then up to its time limit. */
export function runningRow(job: PlannedJob): PlanRow {
  const start = unix(job.start);
  const end = unix(job.end);
  const expected = unix(job.expected);
  const spans: Span[] = [{ from: start, to: expected || end, tone: "info", text: expected > 0 ? "expected to run" : end > 0 ? "until its time limit at most" : "no time limit" }];
  if (expected > 0 && (end === 0 || end > expected)) spans.push({ from: expected, to: end, tone: "plan", text: end > 0 ? "until its time limit at most" : "no time limit" });
  return rowOf(job, spans);
}

/** A job that waits: from its planned start to its time limit. */
export function waitingRow(job: PlannedJob): PlanRow {
  return rowOf(job, [{ from: unix(job.start), to: unix(job.end), tone: "warn", text: "planned" }]);
}

function rowOf(job: PlannedJob, spans: Span[]): PlanRow {
  const size = [job.node_list || count(job.nodes, "node"), job.gpus ? count(job.gpus, "GPU") : ""].filter(Boolean).join(", ");
  return { key: job.job, label: `${job.job} ${job.job_name ?? ""}`, detail: `${job.user}, ${size}`, job: job.job.replace(/_\[.*$/, ""), spans };
}

const steps: Record<string, number> = { hour: 3600, day: 86400, weekday: 86400, weekend: 86400, week: 604800 };

/** Rows of reservations with each time that they hold. */
export function reservationRows(list: readonly Reservation[], from: number, to: number): PlanRow[] {
  return list.flatMap((reservation) => {
    const first = unix(reservation.from);
    const last = unix(reservation.until);
    if (first === 0 || last === 0) return []; // it is over
    const spans: Span[] = [];
    const step = steps[reservation.every ?? ""] ?? Infinity;
    for (let at = 0; first + at < to && spans.length < 200; at += step) {
      const day = new Date((first + at) * 1000).getUTCDay();
      const skipped = (reservation.every === "weekday" && (day === 0 || day === 6)) || (reservation.every === "weekend" && day > 0 && day < 6);
      if (!skipped && last + at > from) spans.push({ from: first + at, to: last + at, tone: "plain", text: reservation.note || reservation.name });
    }
    const who = [...(reservation.accounts ?? []), ...(reservation.users ?? [])].join(", ") || "nobody";
    const nodes = reservation.nodes?.length ? hostList(reservation.nodes) : "all nodes";
    return [{ key: reservation.name, label: reservation.name, detail: `${nodes}, for ${who}`, spans }];
  });
}
