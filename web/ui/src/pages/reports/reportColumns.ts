import type { components } from "../../api/schema";
import { number } from "../../format/number";
import { duration } from "../../format/time";
import type { Kind } from "./reportChoice";

export type Row = components["schemas"]["ReportRow"];

export interface ReportColumn {
  title: string;
  field: keyof Row;
  format: (value: number) => string;
  bar?: boolean; // drawn as a part of the largest
}

const hours = (title: string, field: keyof Row, bar = false): ReportColumn => ({ title, field, format: number, bar });
const percent = (title: string, field: keyof Row): ReportColumn => ({ title, field, format: (value) => `${number(value)} %` });
const time = (title: string, field: keyof Row): ReportColumn => ({ title, field, format: duration });
const plain = (title: string, field: keyof Row): ReportColumn => ({ title, field, format: number });

/** What each report shows; cox report -o csv has all fields. */
export const reportColumns: Record<Kind, ReportColumn[]> = {
  usage: [
    hours("GPU-hours", "gpu_hours_allocated", true), hours("GPU asked", "gpu_hours_asked"), hours("GPU used", "gpu_hours_used"),
    hours("CPU-hours", "cpu_hours_allocated"), hours("CPU asked", "cpu_hours_asked"), hours("CPU used", "cpu_hours_used"), plain("Jobs", "jobs"),
  ],
  waits: [
    time("Median", "wait_median_seconds"), time("90 %", "wait_p90_seconds"), time("99 %", "wait_p99_seconds"), time("Longest", "wait_longest_seconds"),
    plain("Started", "jobs"), plain("Still wait", "waiting"), time("Longest of these", "waiting_longest_seconds"),
  ],
  fairness: [
    plain("Shares", "shares"), percent("Share", "share_percent"), percent("Use", "use_percent"), plain("Use ÷ share", "use_of_share"),
    percent("Decayed use", "decayed_use_percent"), plain("Fair share", "fair_share_factor"),
  ],
  efficiency: [
    hours("GPU-hours", "gpu_hours_allocated", true), percent("GPUs busy", "gpu_busy_percent"), hours("GPU idle", "gpu_hours_idle"), hours("GPU lost", "gpu_hours_lost"),
    hours("GPU overasked", "gpu_hours_overasked"), percent("CPUs busy", "cpu_busy_percent"), percent("Memory used", "memory_used_percent"), percent("Time used", "time_used_percent"),
  ],
  cost: [hours("Cost", "cost", true), hours("GPUs", "cost_gpu"), hours("CPUs", "cost_cpu"), hours("Memory", "cost_memory"), plain("Jobs", "jobs")],
};

/** What a row is of: "nlp", "nlp, anna", or of waits its class of size. */
export function rowName(row: Row): string {
  return [row.account, row.user, row.qos, row.pool, row.service, row.size].filter(Boolean).join(", ") || "–";
}
