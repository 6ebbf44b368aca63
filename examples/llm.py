"""A server that answers as those of language models do, with a model of three lines.

It has POST /v1/chat/completions (with "stream": true as server-sent events), GET /v1/models,
GET /health and GET /metrics, on $PORT, and needs nothing but Python.
"""
import http.server
import json
import os
import signal
import sys
import threading
import time

NAME = "parrot-1"
waiting = 0
lock = threading.Lock()


def tokens(messages):
    """Yields the words of an answer: the last message, said again."""
    said = next((m.get("content", "") for m in reversed(messages) if m.get("role") == "user"), "")
    for word in ("You said: " + str(said)).split(" "):
        yield word + " "


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, status, value, kind="application/json"):
        body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/health":
            self.answer(200, {"status": "ok"})
        elif self.path == "/metrics":
            self.answer(200, "# TYPE llm_requests_waiting gauge\nllm_requests_waiting %d\n" % waiting, "text/plain")
        elif self.path == "/v1/models":
            self.answer(200, {"object": "list", "data": [{"id": NAME, "object": "model"}]})
        else:
            self.answer(404, {"error": {"message": "there is no " + self.path}})

    def do_POST(self):
        global waiting
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/v1/chat/completions":
            return self.answer(404, {"error": {"message": "there is no " + self.path}})
        try:
            asked = json.loads(body)
            messages = asked["messages"]
        except (ValueError, KeyError, TypeError):
            return self.answer(400, {"error": {"message": "send JSON with messages"}})
        with lock:
            waiting += 1
        try:
            if asked.get("stream"):
                return self.stream(messages)
            time.sleep(float(asked.get("delay", 0)))
            text = "".join(tokens(messages)).strip()
            self.answer(200, {
                "id": "chat-%d" % time.time_ns(), "object": "chat.completion", "model": NAME,
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            })
        finally:
            with lock:
                waiting -= 1

    def stream(self, messages):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

        def send(data):
            event = b"data: " + data + b"\n\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()

        for word in tokens(messages):
            send(json.dumps({"object": "chat.completion.chunk", "model": NAME, "choices": [{"index": 0, "delta": {"content": word}}]}).encode())
        send(b"[DONE]")
        self.wfile.write(b"0\r\n\r\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False  # close() waits for the requests in flight
    request_queue_size = 128


server = Server(("", int(os.environ.get("PORT", "8000"))), Handler)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
print("listens on port", server.server_port, flush=True)
server.serve_forever()
server.socket.close()
sys.exit(0)
