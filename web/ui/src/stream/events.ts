import type { ChangeEvent } from "../api/types";
import { openStream, type StreamState } from "./eventSource";

// Changes of the server, for all pages of this browser over one connection: a shared worker holds
// it. A browser without shared workers has one connection for each tab.

export type Listener = (events: ChangeEvent[]) => void;
export type { StreamState };

/** Between the worker and its tabs. */
export type Message = { events: ChangeEvent[] } | { state: StreamState } | "gone";

const listeners = new Set<Listener>();
const stateListeners = new Set<() => void>();
let state: StreamState = "connecting";
let started = false;

function receive(message: Message) {
  if (message === "gone") return;
  if ("events" in message) {
    for (const listener of listeners) listener(message.events);
  } else {
    state = message.state;
    for (const listener of stateListeners) listener();
  }
}

function start() {
  if (started) return;
  started = true;
  if (typeof SharedWorker === "undefined") {
    openStream(receive);
    return;
  }
  let worker = connect();
  window.addEventListener("pagehide", () => worker.port.postMessage("gone" satisfies Message));
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) worker = connect(); // the page comes back from the browser's cache
  });
}

function connect(): SharedWorker {
  const worker = new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module", name: "coxswain-stream" });
  worker.port.onmessage = (event: MessageEvent<Message>) => receive(event.data);
  return worker;
}

/** Calls listener with changes until the returned function is called. */
export function listen(listener: Listener): () => void {
  start();
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function subscribeState(listener: () => void): () => void {
  start();
  stateListeners.add(listener);
  return () => stateListeners.delete(listener);
}

export function streamState(): StreamState {
  return state;
}
