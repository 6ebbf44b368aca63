import type { Job } from "../../api/types";
import { Command } from "../../components/Command";
import { Facts, type Fact } from "../../components/Facts";
import { When } from "../../components/When";
import { count } from "../../format/number";
import { holdingsText, requestText } from "../../format/request";
import { duration, unix } from "../../format/time";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";

/** What cox show prints. */
export function JobFacts({ job }: { job: Job }) {
  const { spec } = job;
  const started = unix(job.started);
  const submitted = unix(job.submitted);
  const facts: Fact[] = [
    ["asks", requestText(job)],
    ["owner", <Link to={addresses.queueOf({ user: spec.owner.user })} key="owner">{spec.owner.user}</Link>],
    ["account", spec.account && <Link to={addresses.queueOf({ account: spec.account })}>{spec.account}</Link>],
    ["qos", spec.qos],
    ["partition", spec.partitions?.join(", ")],
    ["pool", poolText(job)],
    ["array", job.array && `task ${job.array.index} of array ${job.array.job}${job.array.max_running ? `, of which ${job.array.max_running} run at a time` : ""}`],
    ["priority", job.state === "PENDING" && job.priority],
    ["holds", holdingsText(job)],
    ["message", job.message],
    ["failure", job.failure && `of the ${job.failure}${job.failed_on?.length ? ` (${job.failed_on.join(", ")})` : ""}`],
    ["submitted", <When at={submitted} key="submitted" />],
    ["started", started > 0 && <><When at={started} />, waited {duration(started - submitted)}</>],
    ["ended", job.ended && <When at={unix(job.ended)} />],
    ["checkpoint", job.saved && <><When at={unix(job.saved)} /> {job.saved_as}</>],
    ["depends", spec.depends?.text],
    ["comment", spec.comment],
    ["files", job.files?.length ? job.files.join(", ") : ""],
  ];
  for (const idle of job.idle ?? []) {
    const what = idle.processes === 0 ? "no process" : `${count(idle.processes, "process")} without CPU time`;
    facts.push([`idle on ${idle.node}`, <>holds {count(idle.devices, "GPU")}, {what} since <When at={unix(idle.since)} /></>]);
  }
  return (
    <>
      <Facts facts={facts} />
      <p className="card-foot"><Command text={`cox show ${job.name}`} /></p>
    </>
  );
}

function poolText(job: Job): string {
  const pool = job.pool ?? job.spec.pool ?? "";
  return job.spec.chosen ? `${pool}: ${job.spec.chosen.why}` : pool;
}
