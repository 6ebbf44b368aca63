import type { Job } from "../../../api/types";
import { Command } from "../../../components/Command";
import { Segments } from "../../../components/Segments";
import { setQuery, useQuery } from "../../../router/location";
import { parseRank, rankName } from "../ranks";
import { LogView } from "./LogView";
import type { LogSource } from "./useLog";
import "./LogTab.css";

/** The output of a job, or of the rank and the stream that the address names. */
export function LogTab({ job }: { job: Job }) {
  const query = useQuery();
  const rank = query.get("rank") ?? "";
  const stream = query.get("stream") === "stderr" ? "stderr" : "stdout";
  const source: LogSource = { job: job.name, stream, ...parseRank(rank) };
  const ranks = (job.tasks ?? []).filter((task) => task.log && task.step >= 0);
  const streams = job.spec.output.stderr !== undefined || rank !== "";
  return (
    <>
      <div className="log-bar">
        <label>
          <span className="hidden-text">Rank</span>
          <select value={rank} onChange={(event) => setQuery({ rank: event.target.value })}>
            <option value="">the job's output</option>
            {ranks.map((task) => {
              const name = rankName(task);
              const failed = !task.running && (task.exit.status !== 0 || task.exit.signal);
              return <option key={name} value={name}>rank {name} on {task.node}{failed ? ", failed" : ""}</option>;
            })}
          </select>
        </label>
        {streams && <Segments label="Stream" options={[["stdout", "stdout"], ["stderr", "stderr"]]} value={stream} onChange={(each) => setQuery({ stream: each === "stdout" ? "" : each })} />}
        <Command text={`cox logs -f ${stream === "stderr" ? "--stderr " : ""}${job.name}${rank === "" ? "" : `.${rank}`}`} />
      </div>
      <LogView source={source} ended={job.ended !== undefined} />
    </>
  );
}
