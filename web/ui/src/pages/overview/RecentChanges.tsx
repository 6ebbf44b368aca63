import { useEffect, useState } from "react";
import type { ChangeEvent } from "../../api/types";
import { Badge } from "../../components/Badge";
import { When } from "../../components/When";
import { hostList } from "../../format/hosts";
import { unix } from "../../format/time";
import { jobTone, type Tone } from "../../format/tone";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";
import { listen } from "../../stream/events";

const most = 30;

/** The last changes, newest first, while the page is open. */
export function RecentChanges() {
  const [events, setEvents] = useState<ChangeEvent[]>([]);
  useEffect(() => listen((fresh) => setEvents((old) => [...fresh.filter((event) => event.kind !== "gap").reverse(), ...old].slice(0, most))), []);
  if (events.length === 0) return <p className="faint">Nothing has changed since this page was opened.</p>;
  return (
    <ul className="overview-list" aria-live="off">
      {events.map((event) => (
        <li key={event.seq}>
          <Badge tone={toneOf(event)}>{event.state && event.kind === "ended" ? event.state : event.kind}</Badge>
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

function toneOf(event: ChangeEvent): Tone {
  if (event.kind === "ended") return jobTone(event.state ?? "");
  if (event.kind === "started" || event.kind === "allocated") return "info";
  if (event.kind === "uncertain") return "bad";
  return "plain";
}
