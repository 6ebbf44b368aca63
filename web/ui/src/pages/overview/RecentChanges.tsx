import type { ChangeEvent } from "../../api/types";
import { Badge } from "../../components/Badge";
import { When } from "../../components/When";
import { hostList } from "../../format/hosts";
import { unix } from "../../format/time";
import { jobTone, type Tone } from "../../format/tone";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";

/** The last changes, newest first. */
export function RecentChanges({ events }: { events: readonly ChangeEvent[] }) {
  if (events.length === 0) return <p className="faint">Nothing has changed yet.</p>;
  return (
    <ul className="overview-list" aria-live="off">
      {events.map((event) => (
        <li key={event.seq}>
          <Badge tone={toneOf(event)}>{wordsOf(event)}</Badge>
          <span title={event.message}>
            {event.name && <Link to={addresses.job(event.name)}>{event.name}</Link>} {event.user}
            {event.nodes?.length ? <span className="faint"> {hostList(event.nodes)}</span> : null} <span className="faint">{event.message}</span>
          </span>
          <span className="faint"><When at={unix(event.at)} /></span>
        </li>
      ))}
    </ul>
  );
}

const plain: Record<string, string> = { "controller-set": "changed", "controller-gone": "removed" };

/** What happened, in words: "started", "node drained"; of a service or another controller "changed". */
function wordsOf(event: ChangeEvent): string {
  if (event.kind === "ended" && event.state) return event.state;
  return plain[event.kind] ?? event.kind.replaceAll("-", " ");
}

function toneOf(event: ChangeEvent): Tone {
  if (event.kind === "ended") return jobTone(event.state ?? "");
  if (event.kind === "started" || event.kind === "allocated") return "info";
  if (event.kind === "uncertain") return "bad";
  return "plain";
}
