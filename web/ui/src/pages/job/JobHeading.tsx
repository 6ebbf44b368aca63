import type { Job } from "../../api/types";
import { Badge } from "../../components/Badge";
import { useNow } from "../../components/useNow";
import { exitText } from "../../format/request";
import { duration, unix } from "../../format/time";
import { jobTone } from "../../format/tone";
import "./JobHeading.css";

/** "7 train RUNNING for 41 s of 4 h": the answer first. */
export function JobHeading({ job }: { job: Job }) {
  const now = useNow(1);
  return (
    <span className="job-heading">
      <span>
        {job.name} <span className="job-heading-name">{job.spec.name}</span>
      </span>
      <span className="job-heading-state">
        <Badge tone={jobTone(job.state)}>{job.state}</Badge> {spent(job, now)}
        {job.flags?.map((flag) => <span className="job-flag" key={flag}>{flag}</span>)}
      </span>
    </span>
  );
}

function spent(job: Job, now: number): string {
  const started = unix(job.started);
  const ended = unix(job.ended);
  const parts = [];
  if (job.state === "PENDING") parts.push(`for ${duration(now - unix(job.submitted))}`);
  else if (started > 0 && ended === 0) {
    const limit = job.asks?.time_limit_seconds;
    parts.push(`for ${duration(now - started)}${limit ? ` of ${duration(limit)}` : ""}`);
  } else if (started > 0) {
    const failed = job.state !== "COMPLETED" && (job.exit.status !== 0 || (job.exit.signal ?? 0) !== 0);
    parts.push(`after ${duration(ended - started)}${failed ? `, ${exitText(job.exit)}` : ""}`);
  }
  if (job.attempt > 1) parts.push(`attempt ${job.attempt}`);
  return parts.join(", ");
}
