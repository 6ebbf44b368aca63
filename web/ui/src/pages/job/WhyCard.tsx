import { useWhy } from "../../api/queries";
import type { Job, Why } from "../../api/types";
import { Async } from "../../components/Async";
import { Card } from "../../components/Card";
import { Command } from "../../components/Command";
import { When } from "../../components/When";
import { useNow } from "../../components/useNow";
import { hostList } from "../../format/hosts";
import { count } from "../../format/number";
import { duration, unix } from "../../format/time";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";
import "./WhyCard.css";

/** Why a job waits, who holds what it needs, when it starts, and what would start it now. */
export function WhyCard({ job }: { job: Job }) {
  const why = useWhy(job.name, true);
  return (
    <Card title="Why it waits" aside={<Command text={`cox why ${job.name}`} />}>
      <Async query={why}>{(data) => <WhyText why={data} />}</Async>
    </Card>
  );
}

function WhyText({ why }: { why: Why }) {
  const lines = why.lines ?? [];
  const reasons = why.reasons ?? [];
  if (lines.length === 0) return <p className="why-none">Nothing holds it: it starts at once.</p>;
  return (
    <div className="why">
      <ol className="why-lines">
        {lines.map((line, i) => {
          const reason = reasons.length === lines.length ? reasons[i] : undefined;
          return (
            <li key={i}>
              {reason && <code>{reason.code}</code>} {line}
              {reason?.since ? <span className="faint"> since <When at={reason.since} /></span> : null}
            </li>
          );
        })}
      </ol>
      <Holders why={why} />
      <Start why={why} />
      <Changes why={why} />
    </div>
  );
}

function Holders({ why }: { why: Why }) {
  if (!why.holders?.length) return null;
  return (
    <div>
      <h3>Held by</h3>
      <ul className="why-list">
        {why.holders.map((holder, i) => (
          <li key={i}>
            {holder.job ? <><Link to={addresses.job(holder.job)}>job {holder.job}</Link> ({holder.user})</> : "a job of others"} on {hostList(holder.nodes ?? [])}
            {holder.until && <>, ends by <When at={unix(holder.until)} /></>}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Start({ why }: { why: Why }) {
  const now = useNow(10);
  const by = unix(why.starts_by);
  const expected = why.expected;
  if (!expected && by === 0 && !why.elsewhere?.length) return null;
  return (
    <div>
      <h3>Start</h3>
      <ul className="why-list">
        {expected && (
          <li>
            about <b><When at={unix(expected.start)} /></b>, in {duration(unix(expected.start) - now)}
            {expected.known ? <> (80 %: <When at={unix(expected.from)} />–<When at={unix(expected.to)} />; {count(expected.known, "estimate")} of the past week were {late(expected.late_seconds ?? 0)} in the median)</> : null}
          </li>
        )}
        {by > now && <li>by <When at={by} /> at the latest, if all use their whole limits</li>}
        {why.elsewhere?.map((other) => (
          <li key={other.pool}>in pool {other.pool}: {other.start ? <When at={unix(other.start)} /> : `nobody knows when${other.why ? `: ${other.why}` : ""}`}</li>
        ))}
      </ul>
    </div>
  );
}

function late(seconds: number): string {
  if (seconds >= 1) return `late by ${duration(seconds)}`;
  if (seconds <= -1) return `early by ${duration(-seconds)}`;
  return "right";
}

function Changes({ why }: { why: Why }) {
  if (!why.changes?.length) return null;
  return (
    <div>
      <h3>Any of these changes starts it now</h3>
      <ul className="why-list">
        {why.changes.map((change) => (
          <li key={change.option}>
            <code>{change.value ? `--${change.option}=${change.value}` : `without --${change.option}`}</code>
            {change.of && <span className="faint"> (of {change.of})</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}
