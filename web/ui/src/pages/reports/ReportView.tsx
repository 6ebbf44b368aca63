import type { Answer } from "../../api/client";
import { BudgetTable } from "./BudgetTable";
import { Card } from "../../components/Card";
import { Chart } from "../../components/Chart";
import { Empty } from "../../components/Empty";
import { Meter } from "../../components/Meter";
import { number } from "../../format/number";
import { fullTime, unix } from "../../format/time";
import { ReportBars } from "./ReportBars";
import { barPlot, timePlot } from "./reportPlots";
import { reportColumns, rowName, type ReportColumn, type Row } from "./reportColumns";
import type { Kind } from "./reportChoice";

export type Report = Answer<"/v1/reports/{kind}", "get">;

/** What a report looks like, its rows with their sum, and what a reader has to know of them. */
export function ReportView({ report }: { report: Report }) {
  const rows = report.rows ?? [];
  const columns = (reportColumns[report.kind as Kind] ?? []).filter((column) => [...rows, report.total].some((row) => row?.[column.field] !== undefined));
  if (rows.length === 0) return <Empty><p>No job ran in this time.</p></Empty>;
  const bars = barPlot(report);
  const overTime = timePlot(report);
  return (
    <>
      {overTime && (
        <Card title={overTime.title}>
          <Chart label={overTime.title} times={overTime.times} series={[{ label: "allocated", values: overTime.values, tone: "info" }]} step={overTime.step} format={number} />
        </Card>
      )}
      {bars && <ReportBars plot={bars} />}
      <Card title={report.kind === "cost" ? `Cost${report.currency ? ` in ${report.currency}` : ""}` : undefined} aside={report.scope === "own" ? "of your own jobs" : undefined}>
        <div className="scroll-x" tabIndex={0} role="group" aria-label="Rows">
          <table className="plain report-table">
            <thead>
              <tr>
                <th scope="col">{(report.by ?? []).join(", ")}</th>
                {columns.map((column) => <th scope="col" className="number" key={column.field}>{column.title}</th>)}
              </tr>
            </thead>
            <tbody>
              {rows.map((row, i) => <ReportRow key={i} row={row} columns={columns} largest={largest(rows, columns)} />)}
            </tbody>
            {report.total && (
              <tfoot><tr><th scope="row">all</th>{columns.map((column) => <td className="number" key={column.field}>{text(report.total, column)}</td>)}</tr></tfoot>
            )}
          </table>
        </div>
        <p className="card-foot faint">
          {fullTime(unix(report.from))} to {fullTime(unix(report.to))}
        </p>
        {report.notes?.map((note, i) => <p className="faint" key={i}>{note}</p>)}
      </Card>
      {(report.budgets?.length ?? 0) > 0 && <BudgetTable budgets={report.budgets ?? []} currency={report.currency ?? ""} />}
    </>
  );
}

function ReportRow({ row, columns, largest }: { row: Row; columns: ReportColumn[]; largest: number }) {
  return (
    <tr>
      <td className="report-name" style={{ paddingLeft: (row.depth ?? 0) * 14 }}>
        {rowName(row)}
        {columns.filter((column) => column.bar).map((column) => (
          <Meter key={column.field} used={Number(row[column.field] ?? 0)} all={largest} label={`${column.title}: ${text(row, column)}`} />
        ))}
      </td>
      {columns.map((column) => <td className="number" key={column.field}>{text(row, column)}</td>)}
    </tr>
  );
}

function largest(rows: Row[], columns: ReportColumn[]): number {
  const bar = columns.find((column) => column.bar);
  return bar ? Math.max(...rows.map((row) => Number(row[bar.field] ?? 0))) : 0;
}

function text(row: Row | undefined, column: ReportColumn): string {
  const value = row?.[column.field];
  return typeof value === "number" ? column.format(value) : "";
}
