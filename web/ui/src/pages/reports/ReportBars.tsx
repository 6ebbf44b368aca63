import { scaleLinear, scaleSymlog } from "d3-scale";
import { Card } from "../../components/Card";
import { count, number } from "../../format/number";
import type { BarPlot, BarRow } from "./reportPlots";
import "./ReportBars.css";

const lane = 10; // height of a bar with its gap

// Waits are told on these times.
const waits: readonly (readonly [seconds: number, label: string])[] = [[0, "0"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [36_000, "10 h"], [864_000, "10 d"], [8_640_000, "100 d"]];

/** Bars for the rows of a report. */
export function ReportBars({ plot }: { plot: BarPlot }) {
  const scale: (value: number) => number = plot.isTime ? scaleSymlog().domain([0, plot.largest]).range([0, 100]) : scaleLinear().domain([0, plot.largest]).range([0, 100]);
  const marks = plot.isTime ? waits.filter(([at]) => at <= plot.largest) : scaleLinear().domain([0, plot.largest]).ticks(4).map((at) => [at, number(at)] as const);
  return (
    <Card title={plot.title} aside={<Legend legend={plot.legend} />}>
      <ul className="report-bars" aria-label={plot.title}>
        {plot.rows.map((row, i) => <Bars key={i} row={row} scale={scale} />)}
      </ul>
      <div className="report-bars-foot" aria-hidden="true">
        <span />
        <div className="report-bars-axis">
          {marks.filter(([at]) => scale(at) < 95).map(([at, label]) => <span key={at} style={{ left: `${scale(at)}%` }}>{label}</span>)}
        </div>
      </div>
      {plot.left > 0 && <p className="card-foot faint">{count(plot.left, "more row")} in the table.</p>}
    </Card>
  );
}

function Bars({ row, scale }: { row: BarRow; scale: (value: number) => number }) {
  const text = row.bars.flat().map((part) => part.text).join(", ");
  return (
    <li>
      <span className="report-bars-name" style={{ paddingLeft: row.depth * 14 }} title={row.name}>{row.name}</span>
      <svg role="img" aria-label={`${row.name}: ${text}`} viewBox={`0 0 100 ${row.bars.length * lane}`} height={row.bars.length * lane} preserveAspectRatio="none">
        <title>{text}</title>
        {row.bars.map((parts, k) => parts.map((part, i) => {
          const from = scale(parts[i - 1]?.end ?? 0);
          return <rect key={`${k}.${i}`} className={`shade-${part.shade}`} x={from} y={k * lane} width={Math.max(0, scale(part.end) - from)} height={lane - 2} />;
        }))}
      </svg>
    </li>
  );
}

function Legend({ legend }: Pick<BarPlot, "legend">) {
  return (
    <span className="report-legend">
      {legend.map(([name, shade]) => (
        <span key={name}><svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true"><rect className={`shade-${shade}`} width="10" height="10" /></svg> {name}</span>
      ))}
    </span>
  );
}
