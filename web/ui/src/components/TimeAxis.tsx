import { shortTime } from "../format/time";
import { ticks } from "../format/ticks";
import "./TimeAxis.css";

const exact = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** The times below a line of time. */
export function TimeAxis({ from, to }: { from: number; to: number }) {
  const marks = ticks(from, to, 5);
  const fine = marks.length > 1 && (marks[1] ?? 0) - (marks[0] ?? 0) < 60;
  return (
    <div className="time-axis" aria-hidden="true">
      {marks.map((at) => (
        <span key={at} style={{ left: `${(100 * (at - from)) / (to - from)}%` }}>{fine ? exact.format(at * 1000) : shortTime(at, to)}</span>
      ))}
    </div>
  );
}
