package gateway_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/websocket"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/gateway"
)

// TestWebSocket: it works, a gateway that ends waits for it, and the access log has its status.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	access := filepath.Join(t.TempDir(), "access.log")
	w := startGateway(t, gateway.Config{Access: access})
	s := httptest.NewServer(websocket.Handler(func(c *websocket.Conn) {
		var text string
		for websocket.Message.Receive(c, &text) == nil {
			if websocket.Message.Send(c, "got "+text) != nil {
				return
			}
		}
	}))
	defer s.Close()
	w.routes(chat(backendOf(s, "1.1", 1)))
	cfg, err := websocket.NewConfig("ws://chat.localhost/socket", "http://chat.localhost")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := websocket.NewClient(cfg, conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a", strings.Repeat("b", 100_000)} {
		var got string
		if err := websocket.Message.Send(c, text); err != nil {
			t.Fatal(err)
		}
		if err := websocket.Message.Receive(c, &got); err != nil || got != "got "+text {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	w.source.waitLoad(t, "an open WebSocket", func(l api.GatewayLoad) bool { return l.Services[0].InFlight["1.1"] == 1 })
	ended := make(chan struct{})
	go func() { defer close(ended); w.stop() }()
	for {
		more, err := net.Dial("tcp", w.addr)
		if err != nil {
			break // it takes no connections any more
		}
		more.Close()
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
	w.source.waitLoad(t, "no WebSocket when it left", func(l api.GatewayLoad) bool { return l.Leaving && l.Services[0].InFlight["1.1"] == 0 })
	if text, err := os.ReadFile(access); err != nil || !strings.Contains(string(text), `"status":101`) {
		t.Errorf("the access log: %s %v", text, err)
	}
}

// TestEventStreamIsNotBuffered: each event is read before the replica is allowed to write the next.
func TestEventStreamIsNotBuffered(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	next := make(chan struct{})
	w.routes(chat(handled(t, "1.1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	})))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://chat.localhost/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for i := range 3 {
		if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) {
			t.Fatalf("line %q, %v", lines.Text(), lines.Err())
		}
		lines.Scan()
		next <- struct{}{}
	}
}

// plainHTTP2 is a client that speaks HTTP/2 without TLS from the first byte on.
func (w *world) plainHTTP2() *http.Client {
	tr := &http.Transport{
		Protocols: new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", w.addr)
		},
	}
	tr.Protocols.SetUnencryptedHTTP2(true)
	w.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// h2cBackend speaks nothing but HTTP/2 without TLS.
func h2cBackend(t *testing.T, id string, h http.HandlerFunc) api.Backend {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return backendOf(s, id, 1)
}

// grpcFrame is a message of gRPC: a byte, its length, itself.
func grpcFrame(text string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...)
}

func readGRPCFrame(r io.Reader) (string, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", err
	}
	text := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err := io.ReadFull(r, text)
	return string(text), err
}

// TestGRPC: a stream in both directions over HTTP/2 without TLS, each message answered before the next
// is sent, with the status in the trailers.
func TestGRPC(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	r := chat(h2cBackend(t, "1.1", func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" {
			http.Error(w, r.Proto+" "+r.Header.Get("Te"), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
		for {
			text, err := readGRPCFrame(r.Body)
			if err != nil {
				break
			}
			_, _ = w.Write(grpcFrame("got " + text))
			_ = http.NewResponseController(w).Flush()
		}
		w.Header().Set("Grpc-Status", "5")
		w.Header().Set("Grpc-Message", "as asked")
	}))
	r.H2C = true
	w.routes(r)
	body, send := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://chat.localhost/grpc.health.v1.Health/Watch", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	go func() { _, _ = send.Write(grpcFrame("0")) }()
	resp, err := w.plainHTTP2().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s: %s", resp.Proto, resp.Status, text)
	}
	for i := range 5 {
		text, err := readGRPCFrame(resp.Body)
		if err != nil || text != fmt.Sprintf("got %d", i) {
			t.Fatalf("message %d: %q %v", i, text, err)
		}
		if i < 4 {
			if _, err := send.Write(grpcFrame(fmt.Sprint(i + 1))); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = send.Close()
	if _, err := io.ReadAll(resp.Body); err != nil || resp.Trailer.Get("Grpc-Status") != "5" || resp.Trailer.Get("Grpc-Message") != "as asked" {
		t.Fatalf("the trailers are %v, %v", resp.Trailer, err)
	}
}

// TestHTTP2Client: a client that speaks HTTP/2 without TLS before a replica that speaks HTTP/1.1.
func TestHTTP2Client(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	w.routes(chat(deadBackend(t, "0.1", 1), handled(t, "1.1", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %d", r.Proto, r.Host, len(body))
	})))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://chat.localhost/", strings.NewReader(strings.Repeat("x", 300_000)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.plainHTTP2().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); string(text) != "HTTP/1.1 chat.localhost 300000" || resp.ProtoMajor != 2 {
		t.Errorf("%s: %s", resp.Proto, text)
	}
}

func TestForwardedHeaders(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	w.routes(chat(handled(t, "1.1", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s|%s|%s|%s|%s", r.Host, r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Host"), r.Header.Get("X-Forwarded-Proto"), r.URL)
	})))
	_, text, _ := w.get("http://chat.localhost/a%2Fb?q=1;2", "X-Forwarded-For", "8.8.8.8", "X-Forwarded-Proto", "https")
	if text != "chat.localhost|127.0.0.1|chat.localhost|http|/a%2Fb?q=1;2" {
		t.Errorf("the replica got %q", text)
	}
}
