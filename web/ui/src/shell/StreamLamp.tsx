import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { useStreamState } from "../stream/useChanges";
import "./StreamLamp.css";

const texts = {
  connecting: "Connecting to the stream of changes",
  live: "Live: changes appear by themselves",
  lost: "The stream of changes is interrupted; it connects again by itself",
  ended: "You are not signed in any more",
};

/** Whether what is shown is live. */
export function StreamLamp() {
  const state = useStreamState();
  const client = useQueryClient();
  useEffect(() => {
    if (state === "ended") void client.invalidateQueries({ queryKey: ["server"] });
  }, [state, client]);
  return (
    <span className={`stream-lamp stream-${state}`} role="status" title={texts[state]}>
      <span className="stream-dot" aria-hidden="true" />
      {state === "live" ? "live" : state === "connecting" ? "…" : "offline"}
    </span>
  );
}
