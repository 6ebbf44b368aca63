import { useEffect, useRef, useSyncExternalStore } from "react";
import type { ChangeEvent } from "../api/types";
import { listen, streamState, subscribeState, type StreamState } from "./events";

/**
 * Calls refresh when something changed that matters, at most once in every milliseconds; the last
 * change is never left out. A gap in the stream matters always.
 */
export function useChanges(matters: (event: ChangeEvent) => boolean, refresh: () => void, every = 1000) {
  const latest = useRef({ matters, refresh });
  latest.current = { matters, refresh };
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const stop = listen((events) => {
      if (timer !== undefined || !events.some((event) => event.kind === "gap" || latest.current.matters(event))) return;
      timer = setTimeout(() => {
        timer = undefined;
        last = Date.now();
        latest.current.refresh();
      }, Math.max(0, last + every - Date.now()));
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [every]);
}

/** Whether changes arrive. */
export function useStreamState(): StreamState {
  return useSyncExternalStore(subscribeState, streamState);
}
