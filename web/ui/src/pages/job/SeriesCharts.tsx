import { useSeries } from "../../api/queries";
import type { Job, JobSeries } from "../../api/types";
import { Card } from "../../components/Card";
import { Chart, type Series } from "../../components/Chart";
import { Empty } from "../../components/Empty";
import { ProblemView } from "../../components/Problem";
import { bytes, number } from "../../format/number";
import { unix } from "../../format/time";
import { DeviceHeat } from "./DeviceHeat";

/** How a job used CPUs, memory and devices over its time. */
export function SeriesCharts({ job }: { job: Job }) {
  const query = useSeries(job.name, job.state === "RUNNING");
  if (query.error) return <ProblemView error={query.error} />;
  const series = query.data;
  if (!series) return null;
  if (series.points === 0) return series.note && series.state !== "PENDING" ? <Empty><p>No use over time: {series.note}.</p></Empty> : null;
  const start = unix(series.start);
  const times = Array.from({ length: series.points }, (_, i) => start + (i + 0.5) * series.step);
  const held = (value: number | undefined): Series[] => (value ? [{ label: "held", values: times.map(() => value), tone: "plain" }] : []);
  return (
    <>
      <div className="cards">
        {isKnown(series.cpus) && (
          <Card title="CPUs over time">
            <Chart label="Busy CPUs over time" times={times} series={[line("busy", series.cpus, series), ...held(series.held_cpus)]} format={number} />
          </Card>
        )}
        {isKnown(series.memory) && (
          <Card title="Memory over time">
            <Chart label="Memory over time" times={times} series={[line("used", series.memory, series), ...held(series.held_memory)]} format={bytes} />
          </Card>
        )}
        {isKnown(series.gpus) && (
          <Card title="GPUs over time" aside="average of all, per cent busy">
            <Chart label="Busy GPUs over time" times={times} series={[line("busy", series.gpus, series)]} max={100} format={(value) => `${number(value)} %`} />
          </Card>
        )}
        {isKnown(series.gpu_memory) && (
          <Card title="GPU memory over time">
            <Chart label="GPU memory over time" times={times} series={[line("used", series.gpu_memory, series)]} format={bytes} />
          </Card>
        )}
      </div>
      {(series.devices?.length ?? 0) > 0 && <Card title="Each device" aside="time goes to the right; darker is busier"><DeviceHeat series={series} /></Card>}
    </>
  );
}

function isKnown(values: JobSeries["cpus"]): boolean {
  return values?.some((value) => value !== null) ?? false;
}

function line(label: string, values: JobSeries["cpus"], { points }: JobSeries): Series {
  return { label, values: Array.from({ length: points }, (_, i) => values?.[i] ?? null), tone: "info" };
}
