import type { Job } from "../../../api/types";
import { TimeAxis } from "../../../components/TimeAxis";
import { TimeTrack } from "../../../components/TimeTrack";
import { useNow } from "../../../components/useNow";
import { unix } from "../../../format/time";
import { jobSpans, rankRows } from "./spans";
import "./Timeline.css";

/** The life of a job: its states, and below them each rank with its devices. */
export function Timeline({ job }: { job: Job }) {
  const live = !job.ended;
  const now = useNow(live ? 1 : 3600);
  const from = unix(job.submitted);
  const to = Math.max(live ? now : unix(job.ended), from + 1);
  const rows = rankRows(job);
  return (
    <div className="timeline">
      <div className="timeline-row">
        <span className="timeline-label">job</span>
        <TimeTrack spans={jobSpans(job)} from={from} to={to} tall />
      </div>
      {rows.length > 0 && (
        <div className="timeline-ranks" tabIndex={0} role="group" aria-label="Ranks">
          {rows.map((row) => (
            <div className="timeline-row" key={row.label}>
              <span className="timeline-label" title={row.detail}>{row.label} <span className="faint">{row.detail}</span></span>
              <TimeTrack spans={row.spans} from={from} to={to} />
            </div>
          ))}
        </div>
      )}
      <div className="timeline-row">
        <span className="timeline-label" />
        <TimeAxis from={from} to={to} />
      </div>
    </div>
  );
}
