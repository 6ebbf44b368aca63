import { get } from "../api/client";
import { Problem } from "../api/problem";
import type { ChangeEvent } from "../api/types";

/** Whether changes arrive; ended: nobody is signed in any more, and the stream does not come back. */
export type StreamState = "connecting" | "live" | "lost" | "ended";

/** What a stream tells: changes of the jobs that it follows, that something else changed, or that changes were missed. */
export interface Changes {
  events: ChangeEvent[];
  others: boolean;
  gap: boolean;
}

type Sink = (message: { changes: Changes } | { state: StreamState }) => void;

const pause = 250; // ms in which changes are gathered: a burst is one message
const settle = 500; // ms in which pages say which jobs they show, before the stream is opened anew
const soonest = 5000; // ms until a server that refused the stream is asked again; twice as long each time
const latest = 60_000; // ms, at most
const most = 300; // jobs that are followed; changes of more are told as others
const nobody = "4294967295"; // a number that no job has: all changes are others

/**
 * The stream of changes of a server. It has the changes of the jobs that are followed; all others are
 * told as one, at most every two seconds. So an idle page costs next to nothing, however busy the
 * server is. The browser connects again by itself with the number of the last event, so nothing is
 * lost; a server that refuses the stream is asked again, less and less often, until nobody is signed in.
 */
export class Stream {
  private source: EventSource | undefined;
  private followed = new Set<string>();
  private wanted: readonly string[] = [];
  private last = ""; // number of the last event
  private gathered: Changes = { events: [], others: false, gap: false };
  private flush: ReturnType<typeof setTimeout> | undefined;
  private reopen: ReturnType<typeof setTimeout> | undefined;
  private refused = 0; // how often in a row
  private closed = false;

  constructor(private readonly sink: Sink) {
    sink({ state: "connecting" });
    this.open();
  }

  /** Says which jobs are shown. */
  follow(jobs: readonly string[]) {
    this.wanted = jobs.slice(0, most);
    if (this.wanted.every((job) => this.followed.has(job))) return;
    if (this.closed || this.refused > 0) return; // it is opened later, with these
    clearTimeout(this.reopen);
    this.reopen = setTimeout(() => this.open(), settle);
  }

  close() {
    this.closed = true;
    clearTimeout(this.flush);
    clearTimeout(this.reopen);
    this.source?.close();
  }

  private open() {
    this.source?.close();
    this.followed = new Set(this.wanted);
    const jobs = this.wanted.length > 0 ? this.wanted.join(",") : nobody;
    const query = new URLSearchParams({ jobs, others: "2" });
    if (this.last !== "") query.set("after", this.last);
    const source = new EventSource(`/v1/watch?${query}`);
    this.source = source;
    source.onopen = () => {
      this.sink({ state: "live" });
      if (this.last === "" || this.refused > 0) this.missed(); // what changed before is not told
      this.refused = 0;
    };
    source.addEventListener("change", (event) => {
      this.last = event.lastEventId;
      this.gathered.events.push(JSON.parse(event.data as string) as ChangeEvent);
      this.tell();
    });
    source.addEventListener("others", (event) => {
      this.last = event.lastEventId;
      this.gathered.others = true;
      this.tell();
    });
    source.addEventListener("gap", (event) => {
      this.last = event.lastEventId;
      this.missed();
    });
    source.onerror = () => {
      this.sink({ state: "lost" });
      if (source.readyState !== EventSource.CLOSED) return; // it connects again by itself
      clearTimeout(this.reopen);
      this.reopen = setTimeout(() => void this.again(), Math.min(soonest * 2 ** this.refused++, latest));
    };
  }

  /** Opens the stream once more, if somebody is still signed in. */
  private async again() {
    const signedOut = await get("/v1").then(
      (server) => !server.you?.name,
      (error: unknown) => Problem.from(error).isSignedOut,
    );
    if (this.closed) return;
    if (!signedOut) return this.open();
    this.close();
    this.sink({ state: "ended" });
  }

  private missed() {
    this.gathered.gap = true;
    this.tell();
  }

  private tell() {
    this.flush ??= setTimeout(() => {
      this.sink({ changes: this.gathered });
      this.gathered = { events: [], others: false, gap: false };
      this.flush = undefined;
    }, pause);
  }
}
