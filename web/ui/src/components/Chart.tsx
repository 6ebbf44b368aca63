import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Tone } from "../format/tone";
import { useTheme } from "../shell/theme";
import { themeColour } from "../styles/themeColour";
import "./Chart.css";

export interface Series {
  label: string;
  values: readonly (number | null)[]; // null: not known then
  tone: Tone;
}

interface ChartProps {
  label: string;
  times: readonly number[]; // Unix seconds, ascending
  series: readonly Series[];
  max?: number; // of the values; left out: the largest
  step?: number; // seconds: each value is of a part of the time that is so long, with its time in the middle, and a bar
  format?: (value: number) => string;
}

const height = 150;
const least = 60; // seconds that a chart shows
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const calendar = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const day = 86_400; // seconds: the times of a longer chart have their dates

/** Values over time. */
export function Chart({ label, times, series, max, step = 0, format = (value) => String(value) }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const theme = useTheme();
  const shape = series.map((each) => `${each.label}:${each.tone}`).join();
  const data = [times, ...series.map((each) => each.values)] as uPlot.AlignedData;
  const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
  const timeOf = (at: number) => (span > day ? calendar : clock).format(at * 1000);
  const latest = useRef({ data, format, timeOf });
  latest.current = { data, format, timeOf };

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const colour = (name: string) => themeColour(element, name);
    const axis = { stroke: colour("--text-faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: `11px ${getComputedStyle(element).fontFamily}` };
    plot.current = new uPlot({
      width: element.clientWidth,
      height,
      legend: { show: series.length > 1 },
      cursor: { y: false },
      scales: { x: { range: (_, first, last) => [(first ?? 0) - step / 2, Math.max((last ?? 0) + step / 2, (first ?? 0) + least)] }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), max ?? Math.max(1, (high ?? 1) * 1.1)] } },
      axes: [{ ...axis, space: 80, values: (_, marks) => marks.map((mark) => latest.current.timeOf(mark)) }, { ...axis, size: 66, values: (_, ticks) => ticks.map((tick) => latest.current.format(tick)) }],
      series: [{ label: "at", value: (_: uPlot, at: number | null) => (at === null ? "–" : latest.current.timeOf(at)) }, ...series.map((each) => ({
        label: each.label, stroke: colour(`--${each.tone === "plain" ? "text-faint" : each.tone}`), width: 1.5, points: { show: false }, ...(step > 0 && uPlot.paths.bars ? { fill: colour(`--${each.tone === "plain" ? "text-faint" : each.tone}`), paths: uPlot.paths.bars({ size: [0.8, 60] }) } : {}),
        value: (_: uPlot, value: number | null) => (value === null ? "–" : latest.current.format(value)),
      }))],
    }, latest.current.data, element);
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    resize.observe(element);
    return () => {
      resize.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
    // The plot is made anew for other series and other colours; new values go into it below.
  }, [shape, max, step, theme]);

  useEffect(() => plot.current?.setData(data));
  return <div className="chart" ref={box} role="img" aria-label={label} />;
}
