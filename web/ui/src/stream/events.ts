import { Stream, type Changes, type StreamState } from "./eventSource";

// Changes of the server, for all pages of this browser over one connection: a shared worker holds
// it. A browser without shared workers has one connection for each tab.

export type Listener = (changes: Changes) => void;
export type { Changes, StreamState };

/** Between the worker and its tabs. */
export type ToTab = { changes: Changes } | { state: StreamState };
export type FromTab = { follow: readonly string[] } | "gone";

const listeners = new Map<Listener, readonly string[]>(); // with the jobs that each shows
const stateListeners = new Set<() => void>();
let state: StreamState = "connecting";
let tell: ((message: FromTab) => void) | undefined;

function receive(message: ToTab) {
  if ("changes" in message) {
    for (const listener of listeners.keys()) listener(message.changes);
  } else {
    state = message.state;
    for (const listener of stateListeners) listener();
  }
}

function start() {
  if (tell) return;
  if (typeof SharedWorker === "undefined") {
    const stream = new Stream(receive);
    tell = (message) => message !== "gone" && stream.follow(message.follow);
    return;
  }
  let worker = connect();
  tell = (message) => worker.port.postMessage(message);
  window.addEventListener("pagehide", () => tell?.("gone"));
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    worker = connect(); // the page comes back from the browser's cache
    follow();
  });
}

function connect(): SharedWorker {
  const worker = new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module", name: "coxswain-stream" });
  worker.port.onmessage = (event: MessageEvent<ToTab>) => receive(event.data);
  return worker;
}

function follow() {
  tell?.({ follow: [...new Set([...listeners.values()].flat())] });
}

/** Calls listener with changes until the returned function is called; jobs are those that it shows. */
export function listen(listener: Listener, jobs: readonly string[]): () => void {
  start();
  listeners.set(listener, jobs);
  follow();
  return () => {
    listeners.delete(listener);
    follow();
  };
}

export function subscribeState(listener: () => void): () => void {
  start();
  stateListeners.add(listener);
  return () => stateListeners.delete(listener);
}

export function streamState(): StreamState {
  return state;
}
