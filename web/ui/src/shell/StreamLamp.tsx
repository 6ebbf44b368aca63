import { useStreamState } from "../stream/useChanges";
import "./StreamLamp.css";

const texts = {
  connecting: "Connecting to the stream of changes",
  live: "Live: changes appear by themselves",
  lost: "The stream of changes is interrupted; it connects again by itself",
};

/** Whether what is shown is live. */
export function StreamLamp() {
  const state = useStreamState();
  return (
    <span className={`stream-lamp stream-${state}`} role="status" title={texts[state]}>
      <span className="stream-dot" aria-hidden="true" />
      {state === "live" ? "live" : state === "lost" ? "offline" : "…"}
    </span>
  );
}
