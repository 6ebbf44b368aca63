import { useQuery as useRequest } from "@tanstack/react-query";
import { address, get } from "../../api/client";
import { Async } from "../../components/Async";
import { Command } from "../../components/Command";
import { Page } from "../../components/Page";
import { Segments } from "../../components/Segments";
import { setQuery, useQuery } from "../../router/location";
import { ReportView } from "./ReportView";
import { groupingsOf, kinds, kindLabels, periods, windowOf, type Grouping, type Kind, type Period } from "./reportChoice";
import "./ReportsPage.css";

/** Usage, waits, fairness, efficiency and cost of a time. */
export default function ReportsPage() {
  const query = useQuery();
  const kind = kinds.find((each) => each === query.get("kind")) ?? "usage";
  const period = periods.find(([each]) => each === query.get("since"))?.[0] ?? "30d";
  const by = groupingsOf(kind).find((each) => each === query.get("by")) ?? "account";
  const report = useRequest({
    queryKey: ["report", kind, period, by],
    queryFn: ({ signal }) => get("/v1/reports/{kind}", { path: { kind }, query: { from: windowOf(period), by: [by] }, signal }),
    staleTime: 60_000,
  });
  return (
    <Page title="Reports" aside={<Segments label="Report" options={kinds.map((each) => [each, kindLabels[each]] as const)} value={kind} onChange={(each) => setQuery({ kind: each === "usage" ? "" : each })} />}>
      <div className="report-choice">
        <Segments label="Time" options={periods} value={period} onChange={(each) => setQuery({ since: each === "30d" ? "" : each })} />
        <label>by <select value={by} onChange={(event) => setQuery({ by: event.target.value === "account" ? "" : event.target.value })}>{groupingsOf(kind).map((each) => <option key={each}>{each}</option>)}</select></label>
        <Command text={commandOf(kind, period, by)} />
        <span className="report-forms">{(["html", "csv", "md"] as const).map((form) => <a key={form} href={formAddress(kind, period, by, form)} target="_blank" rel="noreferrer noopener">{form}</a>)}</span>
      </div>
      <Async query={report}>{(data) => <ReportView report={data} />}</Async>
    </Page>
  );
}

function commandOf(kind: Kind, period: Period, by: Grouping): string {
  return `cox report ${kind} --since ${period} --by ${by}`;
}

function formAddress(kind: Kind, period: Period, by: Grouping, format: string): string {
  return address("/v1/reports/{kind}", { kind }, { from: windowOf(period), by: [by], format });
}
