import { useEffect, useRef, useState } from "react";
import type { Service } from "../../api/types";
import { Card } from "../../components/Card";
import { Chart, type Series } from "../../components/Chart";
import { count, number, smallRate } from "../../format/number";
import { shortWait } from "../../format/time";

const most = 1200; // points: an hour

/** The load of a service since the page was opened: the server keeps the last minute alone. */
export function LoadCharts({ service }: { service: Service }) {
  const points = useLoad(service);
  const load = service.load;
  if (!load) return <Card title="Requests and latency" aside="unknown"><p className="faint">No gateway has reported in the last 10 seconds.</p></Card>;
  const latency = load.latency;
  return (
    <div className="cards">
      <Card title="Requests per second, and failed ones" aside={`${number(load.requests_per_second)}, ${smallRate(load.failed_per_second)}`}><Chart label="Requests per second" times={points.times} series={points.rate} /></Card>
      <Card title="Latency: p50, p95, p99" aside={latency ? `${shortWait(latency.p50)}, ${shortWait(latency.p95)}, ${shortWait(latency.p99)}` : "unknown"}>
        <Chart label="Latency" times={points.times} series={points.latency} format={shortWait} />
        <p className="card-foot faint">{latency ? `Until the first byte of the answer; ${count(latency.answered, "answer")} in the last minute.` : "No answer in the last minute."}</p>
      </Card>
      <Card title="In flight, and held until a replica is ready" aside={`${number(load.in_flight)}, ${number(load.held)}`}><Chart label="Requests in flight and held" times={points.times} series={points.flight} /></Card>
    </div>
  );
}

type Load = NonNullable<Service["load"]>;

function useLoad(service: Service): { times: number[]; rate: Series[]; flight: Series[]; latency: Series[] } {
  const kept = useRef<[at: number, load: Load | undefined][]>([]);
  const [, redraw] = useState(0);
  useEffect(() => {
    kept.current.push([Date.now() / 1000, service.load]);
    if (kept.current.length > most) kept.current.shift();
    redraw((n) => n + 1);
  }, [service]);
  const column = (of: (load: Load) => number | undefined) => kept.current.map(([, load]) => (load && of(load)) ?? null);
  return {
    times: kept.current.map(([at]) => at),
    rate: [
      { label: "requests/s", values: column((load) => load.requests_per_second), tone: "info" },
      { label: "failed/s", values: column((load) => load.failed_per_second), tone: "bad" },
    ],
    flight: [{ label: "in flight", values: column((load) => load.in_flight), tone: "info" }, { label: "held", values: column((load) => load.held), tone: "warn" }],
    latency: [
      { label: "p50", values: column((load) => load.latency?.p50), tone: "good" },
      { label: "p95", values: column((load) => load.latency?.p95), tone: "info" },
      { label: "p99", values: column((load) => load.latency?.p99), tone: "warn" },
    ],
  };
}
