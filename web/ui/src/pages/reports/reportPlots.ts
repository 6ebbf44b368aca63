import { number } from "../../format/number";
import { duration } from "../../format/time";
import type { Report } from "./ReportView";
import { rowName, type Row } from "./reportColumns";

/** A part of a bar: it ends at a value, and begins where the part before it ends. */
export interface BarPart {
  shade: 0 | 1 | 2;
  end: number;
  text: string;
}

/** The bars of one row of a report, one below the other. */
export interface BarRow {
  name: string;
  depth: number;
  bars: BarPart[][];
}

/** What is drawn of a report: the same as on the page that cox report -o html writes. */
export interface BarPlot {
  title: string;
  legend: readonly [name: string, shade: 0 | 1 | 2][];
  rows: BarRow[];
  left: number; // rows that are not drawn
  largest: number;
  isTime: boolean; // of seconds, on a scale on which 1 s, 1 min and 1 h are apart
}

/** Held devices, CPUs or cost in parts of the window. */
export interface TimePlot {
  title: string;
  step: number; // seconds
  times: number[]; // Unix seconds, the middles of the parts
  values: number[];
}

const most = 25; // rows
const fields = {
  gpu: { asked: "gpu_hours_asked", allocated: "gpu_hours_allocated", used: "gpu_hours_used", measured: "gpu_hours_measured", idle: "gpu_hours_idle" },
  cpu: { asked: "cpu_hours_asked", allocated: "cpu_hours_allocated", used: "cpu_hours_used", measured: "cpu_hours_measured", idle: "cpu_hours_idle" },
} as const;
const amount = (value: number | undefined) => value ?? 0;

/** The bars of a report, or undefined: all are empty. */
export function barPlot(report: Report): BarPlot | undefined {
  const shape = shapeOf(report);
  const rows = report.rows ?? [];
  if (!shape) return undefined;
  const drawn = rows.slice(0, most).map((row) => ({ name: rowName(row), depth: row.depth ?? 0, bars: shape.bars(row) }));
  const largest = Math.max(0, ...drawn.flatMap(({ bars }) => bars.flat().map(({ end }) => end)));
  if (largest === 0) return undefined;
  return { title: shape.title, legend: shape.legend, rows: drawn, left: rows.length - drawn.length, largest, isTime: report.kind === "waits" };
}

interface Shape extends Pick<BarPlot, "title" | "legend"> {
  bars: (row: Row) => BarPart[][];
}

function shapeOf(report: Report): Shape | undefined {
  const unit = unitOf(report);
  const of = fields[unit];
  const one = (shade: 0 | 1 | 2, what: string, value: number | undefined, suffix = ""): BarPart[] => [{ shade, end: amount(value), text: `${what} ${number(amount(value))}${suffix}` }];
  switch (report.kind) {
    case "usage":
      return {
        title: `${unit.toUpperCase()}-hours`, legend: [["asked", 0], ["allocated", 1], ["used", 2]],
        bars: (row) => [one(0, "asked", row[of.asked]), one(1, "allocated", row[of.allocated]), one(2, "used", row[of.used])],
      };
    case "efficiency":
      return {
        title: `${unit.toUpperCase()}-hours allocated`, legend: [["used", 2], ["idle", 1], ["not measured", 0]],
        bars: (row) => {
          const measured = amount(row[of.measured]);
          const idle = amount(row[of.idle]);
          return [stack([2, "used", measured - idle], [1, "idle", idle], [0, "not measured", Math.max(0, amount(row[of.allocated]) - measured)])];
        },
      };
    case "cost":
      return {
        title: `Cost ${report.currency ?? ""}`.trim(), legend: [["GPUs", 2], ["CPUs", 1], ["memory", 0]],
        bars: (row) => [stack([2, "GPUs", amount(row.cost_gpu)], [1, "CPUs", amount(row.cost_cpu)], [0, "memory", amount(row.cost_memory)])],
      };
    case "fairness":
      return {
        title: "Per cent of the machine", legend: [["share", 0], ["use", 1]],
        bars: (row) => [one(0, "share", row.share_percent, " %"), one(1, "use", row.use_percent, " %")],
      };
    case "waits":
      return {
        title: "Wait of jobs that started", legend: [["up to the median", 2], ["to 90 %", 1], ["to 99 %", 0]],
        bars: (row) => [([[2, "median", row.wait_median_seconds], [1, "90 %", row.wait_p90_seconds], [0, "99 %", row.wait_p99_seconds]] as const)
          .map(([shade, what, value]) => ({ shade, end: amount(value), text: `${what} ${duration(amount(value))}` }))],
      };
  }
  return undefined;
}

/** Parts that follow each other. */
function stack(...parts: [shade: 0 | 1 | 2, what: string, value: number][]): BarPart[] {
  let end = 0;
  return parts.map(([shade, what, value]) => ({ shade, end: (end += value), text: `${what} ${number(value)}` }));
}

function unitOf(report: Report): "gpu" | "cpu" {
  return amount(report.total?.gpu_hours_allocated) > 0 ? "gpu" : "cpu";
}

/** What was held over the window, or undefined: nothing, or it has one part. */
export function timePlot(report: Report): TimePlot | undefined {
  const points = report.over_time?.points ?? [];
  const step = report.over_time?.step_seconds ?? 0;
  const unit = unitOf(report);
  const isCost = report.kind === "cost";
  const values = points.map((point) => (isCost ? amount(point.cost) : point[fields[unit].allocated]));
  if (values.length < 2 || Math.max(...values) <= 0) return undefined;
  return {
    title: isCost ? `Cost ${report.currency ?? ""} over time` : `${unit.toUpperCase()}-hours allocated over time`,
    step, times: points.map((point) => Date.parse(point.from) / 1000 + step / 2), values,
  };
}
