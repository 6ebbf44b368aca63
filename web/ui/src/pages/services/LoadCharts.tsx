import { useEffect, useRef, useState } from "react";
import type { Service } from "../../api/types";
import { Card } from "../../components/Card";
import { Chart, type Series } from "../../components/Chart";
import { number } from "../../format/number";

const most = 1200; // points: an hour

/** The load of a service since the page was opened: the server keeps the last minute alone. */
export function LoadCharts({ service }: { service: Service }) {
  const points = useLoad(service);
  const load = service.load;
  if (!load) return null;
  return (
    <div className="cards">
      <Card title="Requests per second" aside={number(load.requests_per_second)}><Chart label="Requests per second" times={points.times} series={points.rate} /></Card>
      <Card title="In flight, and held until a replica is ready" aside={`${number(load.in_flight)}, ${number(load.held)}`}><Chart label="Requests in flight and held" times={points.times} series={points.flight} /></Card>
    </div>
  );
}

function useLoad(service: Service): { times: number[]; rate: Series[]; flight: Series[] } {
  const kept = useRef<[at: number, rate: number, flight: number, held: number][]>([]);
  const [, redraw] = useState(0);
  useEffect(() => {
    const load = service.load;
    if (!load) return;
    kept.current.push([Date.now() / 1000, load.requests_per_second, load.in_flight, load.held]);
    if (kept.current.length > most) kept.current.shift();
    redraw((n) => n + 1);
  }, [service]);
  const column = (i: 1 | 2 | 3) => kept.current.map((point) => point[i]);
  return {
    times: kept.current.map(([at]) => at),
    rate: [{ label: "requests/s", values: column(1), tone: "info" }],
    flight: [{ label: "in flight", values: column(2), tone: "info" }, { label: "held", values: column(3), tone: "warn" }],
  };
}
