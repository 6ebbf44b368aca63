import type { Tone } from "../format/tone";
import "./Badge.css";

/** A word with a colour: the state of something. The dot tells tones apart without their colour. */
export function Badge({ tone, children }: { tone: Tone; children: string }) {
  return <span className={`badge badge-${tone}`}>{children}</span>;
}
