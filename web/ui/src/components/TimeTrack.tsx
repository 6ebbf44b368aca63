import type { Tone } from "../format/tone";
import { duration, fullTime } from "../format/time";
import "./TimeTrack.css";

/** A time in which something was in one state. */
export interface Span {
  from: number; // Unix seconds
  to: number; // 0: it lasts
  tone: Tone | "plan";
  text: string;
}

interface TimeTrackProps {
  spans: Span[];
  from: number;
  to: number;
  tall?: boolean;
}

/** Spans as bars on a line of time. */
export function TimeTrack({ spans, from, to, tall = false }: TimeTrackProps) {
  const place = (at: number) => Math.max(0, Math.min(100, (100 * (at - from)) / (to - from)));
  return (
    <div className={tall ? "track track-tall" : "track"}>
      {spans.map((span, i) => {
        const end = span.to || to;
        const text = `${span.text}, ${duration(end - span.from)}\n${fullTime(span.from)} – ${span.to ? fullTime(span.to) : "now"}`;
        const left = place(span.from);
        return (
          <div key={i} className={`track-bar track-${span.tone}`} title={text} style={{ left: `${left}%`, width: `${place(end) - left}%` }}>
            {tall && <span>{span.text}</span>}
            {!tall && <span className="hidden-text">{span.text}</span>}
          </div>
        );
      })}
    </div>
  );
}
