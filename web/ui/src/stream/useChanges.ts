import { useEffect, useRef, useSyncExternalStore } from "react";
import { listen, streamState, subscribeState, type Changes, type StreamState } from "./events";

interface Pace {
  soon?: number; // ms from one refresh to the next while shown jobs change
  later?: number; // ms while only others change
}

/**
 * Calls refresh after changes: soon after those of jobs that are shown, later after others, because
 * only order and counts can be old then. The last change is never left out. A hidden page waits until
 * it is looked at.
 */
export function useChanges(jobs: readonly string[], refresh: () => void, { soon = 1000, later = 10_000 }: Pace = {}) {
  const latest = useRef(refresh);
  latest.current = refresh;
  const shown = [...new Set(jobs.map(numberOf).filter(isFollowed))].sort().join();
  useEffect(() => {
    const own = new Set(shown.split(",").filter(Boolean));
    let timer: ReturnType<typeof setTimeout> | undefined;
    let due = Infinity;
    let last = 0;
    const run = () => {
      timer = undefined;
      due = Infinity;
      if (document.hidden) {
        document.addEventListener("visibilitychange", () => plan(0), { once: true });
        return;
      }
      last = Date.now();
      latest.current();
    };
    const plan = (pace: number) => {
      const at = Math.max(Date.now(), last + pace);
      if (at >= due) return;
      clearTimeout(timer);
      due = at;
      timer = setTimeout(run, at - Date.now());
    };
    const stop = listen((changes: Changes) => {
      const mine = changes.gap || changes.events.some((event) => own.has(numberOf(event.name ?? "")) || own.has(String(event.job)));
      if (mine) plan(soon);
      else plan(later);
    }, [...own]);
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [shown, soon, later]);
}

/** The number under which a job is followed: of waiting tasks of an array that are one row, the array's. */
function numberOf(name: string): string {
  return name.replace(/_\[.*$/, "");
}

/** Whether the server can follow a job of that name: it refuses a stream with any other, for all tabs. */
function isFollowed(name: string): boolean {
  const parts = /^(\d{1,18})(?:_(\d{1,7})|\+(\d{1,7}))?$/.exec(name);
  return parts !== null && Number(parts[1]) > 0 && Number(parts[2] ?? 0) <= 4_000_000 && Number(parts[3] ?? 0) <= 1 << 20;
}

/** Whether changes arrive. */
export function useStreamState(): StreamState {
  return useSyncExternalStore(subscribeState, streamState);
}
