import type { Job, Task } from "../../api/types";
import { Badge } from "../../components/Badge";
import { exitText } from "../../format/request";
import { duration, unix } from "../../format/time";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";
import { useNow } from "../../components/useNow";
import { setQuery, useQuery } from "../../router/location";
import { rankName, sortedTasks } from "./ranks";

const few = 16;

/** The processes of a job, those that failed first. */
export function RankTable({ job }: { job: Job }) {
  const all = useQuery().get("ranks") === "all";
  const now = useNow(1);
  const tasks = sortedTasks(job.tasks ?? []);
  const shown = all ? tasks.slice(0, 2000) : tasks.slice(0, few);
  return (
    <div className="scroll-x">
      <table className="plain">
        <thead>
          <tr><th scope="col">Rank</th><th scope="col">Node</th><th scope="col">State</th><th scope="col" className="number">Time</th><th scope="col">Log</th></tr>
        </thead>
        <tbody>
          {shown.map((task) => (
            <tr key={`${task.step}.${task.rank}`}>
              <td>{rankName(task)}</td>
              <td><Link to={addresses.node(task.node)}>{task.node}</Link></td>
              <td><TaskState task={task} /></td>
              <td className="number">{spent(task, now)}</td>
              <td>{task.log && <Link to={addresses.log(job.name, task.step < 0 ? "" : rankName(task))}>log</Link>}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {tasks.length > shown.length && (
        <p><button type="button" className="link-button" onClick={() => setQuery({ ranks: "all" })}>Show all {tasks.length} ranks</button></p>
      )}
    </div>
  );
}

function TaskState({ task }: { task: Task }) {
  if (task.running) return <Badge tone="info">running</Badge>;
  const ok = task.exit.status === 0 && !task.exit.signal;
  const cause = task.cause && task.cause !== "exited" ? `, ${task.cause}` : "";
  return <Badge tone={ok ? "good" : "bad"}>{exitText(task.exit) + cause}</Badge>;
}

function spent(task: Task, now: number): string {
  const started = unix(task.started);
  return started === 0 ? "" : duration((unix(task.ended) || now) - started);
}
