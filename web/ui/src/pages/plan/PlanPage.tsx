import { useQueryClient } from "@tanstack/react-query";
import { usePlan } from "../../api/queries";
import { Async } from "../../components/Async";
import { Card } from "../../components/Card";
import { Command } from "../../components/Command";
import { Empty } from "../../components/Empty";
import { Page } from "../../components/Page";
import { Segments } from "../../components/Segments";
import { TimeAxis } from "../../components/TimeAxis";
import { TimeTrack } from "../../components/TimeTrack";
import { useNow } from "../../components/useNow";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";
import { setQuery, useQuery } from "../../router/location";
import { number } from "../../format/number";
import { useChanges } from "../../stream/useChanges";
import { reservationRows, runningRow, waitingRow, type PlanRow } from "./planRows";
import "./PlanPage.css";

const spans = [["2", "2 h"], ["8", "8 h"], ["24", "1 day"], ["168", "1 week"]] as const;

/** The next hours: what runs and until when at most, what is planned, what is reserved. */
export default function PlanPage() {
  const chosen = useQuery().get("hours");
  const hours = spans.find(([each]) => each === chosen)?.[0] ?? "8";
  const now = useNow(30);
  const from = now - Number(hours) * 180; // a twentieth of it is the past
  const to = now + Number(hours) * 3600;
  const plan = usePlan(Number(hours));
  const client = useQueryClient();
  useChanges([], () => void client.invalidateQueries({ queryKey: ["plan"] }));
  return (
    <Page title="Plan" aside={
      <>
        <Segments label="Hours" options={spans} value={hours} onChange={(each) => setQuery({ hours: each === "8" ? "" : each })} />
        <Command text="cox reserve list" />
      </>
    }>
      <Async query={plan}>
        {(data) => {
          const reservations = reservationRows(data.reservations ?? [], from, to);
          const running = (data.running ?? []).map(runningRow);
          const waiting = (data.waiting ?? []).map(waitingRow);
          return (
            <>
              {reservations.length > 0 && <Card title="Reservations"><PlanRows rows={reservations} from={from} to={to} now={now} /></Card>}
              <Card title="Running" aside={data.more_running ? `${number(data.more_running)} more` : "solid: as long as jobs like it took; outlined: up to the time limit"}>
                {running.length === 0 ? <Empty><p>Nothing runs.</p></Empty> : <PlanRows rows={running} from={from} to={to} now={now} />}
              </Card>
              <Card title="Planned" aside={data.more_waiting ? `${number(data.more_waiting)} more wait without a planned start in this time` : undefined}>
                {waiting.length === 0 ? <Empty><p>No start is planned in this time.</p></Empty> : <PlanRows rows={waiting} from={from} to={to} now={now} />}
              </Card>
            </>
          );
        }}
      </Async>
    </Page>
  );
}

interface PlanRowsProps {
  rows: readonly PlanRow[];
  from: number;
  to: number;
  now: number;
}

function PlanRows({ rows, from, to, now }: PlanRowsProps) {
  return (
    <div className="plan">
      <div className="plan-rows" tabIndex={0} role="group" aria-label="Rows">
        {rows.map((row) => (
          <div className="plan-row" key={row.key}>
            <span className="plan-label" title={row.detail}>
              {row.job ? <Link to={addresses.job(row.job)}>{row.label}</Link> : row.label} <span className="faint">{row.detail}</span>
            </span>
            <TimeTrack spans={row.spans} from={from} to={to} />
          </div>
        ))}
      </div>
      <div className="plan-row">
        <span />
        <div className="plan-axis">
          <TimeAxis from={from} to={to} />
          <span className="plan-now" style={{ left: `${(100 * (now - from)) / (to - from)}%` }}>now</span>
        </div>
      </div>
    </div>
  );
}
