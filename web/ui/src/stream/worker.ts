/// <reference lib="webworker" />
import { openStream, type StreamState } from "./eventSource";
import type { Message } from "./events";

// The shared worker: one connection to the server for all tabs of a browser. The connection is
// closed while there is no tab.

declare const self: SharedWorkerGlobalScope;

const ports = new Set<MessagePort>();
let close: (() => void) | undefined;
let state: StreamState = "connecting";

self.onconnect = (event) => {
  const port = event.ports[0];
  if (!port) return;
  ports.add(port);
  port.onmessage = (message: MessageEvent<Message>) => {
    if (message.data === "gone") leave(port);
  };
  port.postMessage({ state } satisfies Message);
  close ??= openStream((message) => {
    if ("state" in message) state = message.state;
    for (const each of ports) each.postMessage(message);
  });
};

function leave(port: MessagePort) {
  ports.delete(port);
  if (ports.size > 0) return;
  close?.();
  close = undefined;
}
