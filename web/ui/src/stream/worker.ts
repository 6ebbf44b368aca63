/// <reference lib="webworker" />
import { Stream, type StreamState } from "./eventSource";
import type { FromTab, ToTab } from "./events";

// The shared worker: one connection to the server for all tabs of a browser. It follows the jobs that
// any of them shows, and is closed while there is no tab. After its end, the next tab opens another one.

declare const self: SharedWorkerGlobalScope;

const tabs = new Map<MessagePort, readonly string[]>();
let stream: Stream | undefined;
let state: StreamState = "connecting";

self.onconnect = (event) => {
  const port = event.ports[0];
  if (!port) return;
  tabs.set(port, []);
  port.onmessage = (message: MessageEvent<FromTab>) => {
    if (message.data === "gone") leave(port);
    else {
      tabs.set(port, message.data.follow);
      follow();
    }
  };
  if (!stream) {
    stream = new Stream((message) => {
      if ("state" in message) state = message.state;
      if (state === "ended") stream = undefined;
      for (const tab of tabs.keys()) tab.postMessage(message);
    });
    follow();
  }
  port.postMessage({ state } satisfies ToTab);
};

function follow() {
  stream?.follow([...new Set([...tabs.values()].flat())]);
}

function leave(port: MessagePort) {
  tabs.delete(port);
  if (tabs.size > 0) return;
  stream?.close();
  stream = undefined;
}
