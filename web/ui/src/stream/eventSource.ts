import type { ChangeEvent } from "../api/types";

export type StreamState = "connecting" | "live" | "lost";

type Sink = (message: { events: ChangeEvent[] } | { state: StreamState }) => void;

const pause = 250; // ms in which changes are gathered: a burst is one message

/**
 * Opens the stream of changes. The browser connects again by itself with the number of the last
 * event, so nothing is lost; an event "gap" says that something was, and comes as a change of kind
 * gap. A server that refuses the stream is asked again after some seconds. Returns the end.
 */
export function openStream(sink: Sink): () => void {
  let source: EventSource | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let flush: ReturnType<typeof setTimeout> | undefined;
  let gathered: ChangeEvent[] = [];

  const push = (event: ChangeEvent) => {
    gathered.push(event);
    flush ??= setTimeout(() => {
      sink({ events: gathered });
      gathered = [];
      flush = undefined;
    }, pause);
  };

  const open = () => {
    source = new EventSource("/v1/watch");
    source.onopen = () => sink({ state: "live" });
    source.addEventListener("change", (event) => push(JSON.parse(event.data as string) as ChangeEvent));
    source.addEventListener("gap", (event) => push({ seq: Number(event.lastEventId), at: "", kind: "gap" }));
    source.onerror = () => {
      sink({ state: "lost" });
      if (source?.readyState !== EventSource.CLOSED) return; // it connects again by itself
      retry = setTimeout(() => {
        push({ seq: 0, at: "", kind: "gap" }); // what happened meanwhile is not known
        open();
      }, 5000);
    };
  };

  sink({ state: "connecting" });
  open();
  return () => {
    clearTimeout(retry);
    clearTimeout(flush);
    source?.close();
  };
}
