import { useUsage } from "../../api/queries";
import type { Job, Usage } from "../../api/types";
import { Async } from "../../components/Async";
import { Card } from "../../components/Card";
import { Command } from "../../components/Command";
import { Empty } from "../../components/Empty";
import { bytes, count } from "../../format/number";
import { exitText, holdingsOf } from "../../format/request";
import { duration, unix } from "../../format/time";
import { useNow } from "../../components/useNow";
import { SeriesCharts } from "./SeriesCharts";
import { UsageBar } from "./UsageBar";
import { hasCPU, hasIO, hasMemory, cpuSeconds } from "./usageParts";

/** What a job used of what it held. */
export function JobUsage({ job }: { job: Job }) {
  const usage = useUsage(job.name, job.state === "RUNNING");
  return (
    <>
      <Async query={usage}>{(data) => <UsageCards job={job} usage={data} />}</Async>
      <SeriesCharts job={job} />
    </>
  );
}

function UsageCards({ job, usage }: { job: Job; usage: Usage }) {
  const now = useNow(5);
  const used = usage.used;
  if (!used) {
    return <Empty><p>{usage.state === "PENDING" ? "It has not started." : "Nobody measured what this job used."}</p></Empty>;
  }
  const held = holdingsOf(job);
  const started = unix(job.started);
  const seconds = started > 0 ? (unix(job.ended) || now) - started : 0;
  return (
    <>
      <div className="cards">
        {hasCPU(used.total) && (
          <UsageBar title="CPUs" part={cpuSeconds(used.total)} whole={held.cpus * seconds}
            text={`${duration(cpuSeconds(used.total))} of CPU time of ${count(held.cpus, "CPU")} × ${duration(seconds)}`} />
        )}
        {hasMemory(used.total) && (
          <UsageBar title="Memory" part={used.total.memory ?? 0} whole={held.memory}
            text={`at most ${bytes(used.total.memory ?? 0)}${held.memory > 0 ? ` of ${bytes(held.memory)}` : ""}`} />
        )}
        {used.gpus && used.gpus.count > 0 && (
          <UsageBar title={count(used.gpus.count, "GPU")} part={used.gpus.busy} whole={100}
            text={`busy on average${used.gpus.memory ? `, ${bytes(used.gpus.memory)}${used.gpus.of ? ` of ${bytes(used.gpus.of)}` : ""} of memory` : ""}`} />
        )}
        {hasIO(used.total) && (
          <Card title="Disk">read {bytes(used.total.read ?? 0)}, wrote {bytes(used.total.written ?? 0)}</Card>
        )}
      </div>
      <Card title="Steps" aside={<Command text={`cox show ${job.name} -o json`} />}>
        <div className="scroll-x">
          <table className="plain">
            <thead>
              <tr><th scope="col">Step</th><th scope="col">State</th><th scope="col" className="number">Tasks</th><th scope="col">Nodes</th><th scope="col" className="number">CPU time</th><th scope="col" className="number">Memory of the largest task</th><th scope="col">Exit</th></tr>
            </thead>
            <tbody>
              {usage.steps?.map((step) => (
                <tr key={step.id}>
                  <td>{step.id} {step.name && step.name !== step.id && <span className="soft">{step.name}</span>}</td>
                  <td>{step.state}</td>
                  <td className="number">{step.tasks}</td>
                  <td>{step.nodes}</td>
                  <td className="number">{step.used && hasCPU(step.used.sum) ? duration(cpuSeconds(step.used.sum)) : ""}</td>
                  <td className="number">{step.used?.max_memory ? bytes(step.used.max_memory.value) : ""}</td>
                  <td>{step.state === "RUNNING" ? "" : exitText(step.exit)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Card>
    </>
  );
}
