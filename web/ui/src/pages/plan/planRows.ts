import type { QueueRow } from "../../api/columns";
import type { Reservation } from "../../api/types";
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

/** Rows of jobs: those that run, by their ends; those that are planned, by their starts; how many have no start within the time. */
export function jobRows(rows: readonly QueueRow[], now: number, to: number): { running: PlanRow[]; planned: PlanRow[]; open: number } {
  const running = rows.filter((row) => row.started > 0).sort((a, b) => endOf(a) - endOf(b));
  const planned = rows.filter((row) => row.started === 0 && row.startsBy > now && row.startsBy < to).sort((a, b) => a.startsBy - b.startsBy);
  const waiting = rows.filter((row) => row.started === 0).length;
  return {
    running: running.map((row) => rowOf(row, {
      from: row.started, to: Number.isFinite(endOf(row)) ? endOf(row) : 0, tone: "info", text: row.timeLimit > 0 ? "until its time limit at most" : "no time limit",
    })),
    planned: planned.map((row) => rowOf(row, { from: row.startsBy, to: row.timeLimit > 0 ? row.startsBy + row.timeLimit : 0, tone: "warn", text: "planned" })),
    open: waiting - planned.length,
  };
}

function endOf(row: QueueRow): number {
  return row.timeLimit > 0 ? row.started + row.timeLimit : Infinity;
}

function rowOf(row: QueueRow, span: Span): PlanRow {
  const size = [row.nodeList || count(row.nodes, "node"), row.gpus > 0 ? count(row.gpus, "GPU") : ""].filter(Boolean).join(", ");
  return { key: row.name, label: `${row.name} ${row.jobName}`, detail: `${row.user}, ${size}`, job: row.name.replace(/_\[.*$/, ""), spans: [span] };
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
