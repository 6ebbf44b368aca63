package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/gateway"
)

// keptBackend takes connections and gives each request on them to f, until f says that it was the last.
func keptBackend(t *testing.T, f func(net.Conn, *http.Request) (more bool)) (b api.Backend, connections *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	connections = new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go func() {
				defer c.Close()
				for in := bufio.NewReader(c); ; {
					r, err := http.ReadRequest(in)
					if err != nil || !f(c, r) {
						return
					}
				}
			}()
		}
	}()
	return api.Backend{ID: "1.1", Address: l.Addr().String(), Revision: 1, Ready: true}, connections
}

// TestRequestsAreRepeatedOnceOverUsedConnections: a replica answers the first request of each
// connection and ends it at the second. However many connections are left from before, a request is
// sent once, and one more time if it may be.
//
// Seen to fail with: requests given to http.Transport, which tries one connection after another.
func TestRequestsAreRepeatedOnceOverUsedConnections(t *testing.T) {
	t.Parallel()
	const left = 5
	for _, c := range []struct {
		method, body string
		header       []string
		want         int32
	}{
		{"GET", "", nil, 2},
		{"HEAD", "", nil, 2},
		{"DELETE", "", nil, 2},
		{"POST", "", nil, 1},
		{"POST", "", []string{"Idempotency-Key", "k"}, 1},
		{"POST", "", []string{"X-Idempotency-Key", "k"}, 1},
		{"GET", "", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 2},
		{"POST", "body", []string{"Idempotency-Key", "k"}, 1},
		{"POST", "body", []string{"X-Idempotency-Key", ""}, 1},
		{"PUT", "body", nil, 1},
	} {
		t.Run(c.method+c.body+strings.Join(c.header, ""), func(t *testing.T) {
			t.Parallel()
			w := startGateway(t, gateway.Config{})
			var sent atomic.Int32
			var together sync.WaitGroup
			together.Add(left)
			b, _ := keptBackend(t, func(conn net.Conn, r *http.Request) bool {
				_, _ = io.Copy(io.Discard, r.Body)
				if r.URL.Path != "/first" {
					sent.Add(1)
					return false
				}
				together.Done()
				together.Wait() // so that each has a connection of its own
				_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				return err == nil
			})
			w.routes(chat(b))
			var asking sync.WaitGroup
			for range left {
				asking.Go(func() {
					if resp, _, err := w.send(c.method, "http://chat.localhost/first", c.body); err != nil || resp.StatusCode != 200 {
						t.Errorf("the first requests: %v %v", resp, err)
					}
				})
			}
			asking.Wait()
			status, _, _ := w.do(c.method, "http://chat.localhost/", c.body, c.header...)
			if status != 502 || sent.Load() != c.want {
				t.Errorf("%d, sent %d times, want %d", status, sent.Load(), c.want)
			}
		})
	}
}

// TestConnectionsAreUsedAgain: one client needs one connection to a replica, whatever the answers are
// like, unless an answer ends it or more comes than was asked for.
func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, method, answer string
		body                 string
		want                 int32
	}{
		{"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", "body", 1},
		{"no body", "GET", "HTTP/1.1 204 No Content\r\n\r\n", "", 1},
		{"head", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", "", 1},
		{"chunks", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", "body", 1},
		{"larger than a buffer", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100_000), strings.Repeat("x", 100_000), 1},
		{"early hints", "GET", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", "body", 1},
		{"close", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody", "body", 3},
		{"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody", "body", 3},
		{"too much", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbodyHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged", "body", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := startGateway(t, gateway.Config{})
			b, connections := keptBackend(t, func(conn net.Conn, _ *http.Request) bool {
				_, err := io.WriteString(conn, c.answer)
				return err == nil
			})
			w.routes(chat(b))
			for range 3 {
				resp, text, err := w.send(c.method, "http://chat.localhost/", "")
				if err != nil || resp.StatusCode >= 300 || text != c.body {
					t.Fatalf("%v %d bytes, %v", resp, len(text), err)
				}
			}
			if n := connections.Load(); n != c.want {
				t.Errorf("%d connections, want %d", n, c.want)
			}
		})
	}
}

// TestClosedConnectionIsSeenBeforeItIsUsed: a POST, which is not sent twice, does not meet a connection
// that its replica has closed meanwhile.
func TestClosedConnectionIsSeenBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	closed := make(chan struct{})
	b, connections := keptBackend(t, func(conn net.Conn, r *http.Request) bool {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		if r.URL.Path == "/last" {
			_ = conn.Close()
			closed <- struct{}{}
		}
		return true
	})
	w.routes(chat(b))
	for range 20 {
		if status, text, _ := w.do("POST", "http://chat.localhost/last", ""); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		<-closed
	}
	if n := connections.Load(); n != 20 {
		t.Errorf("%d connections", n)
	}
}

func TestEarlyHintsArePassedOn(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	w.routes(chat(rawBackend(t, "1.1", func(c net.Conn, _ *http.Request) {
		_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")
	})))
	hints := make(chan string, 1)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints <- fmt.Sprint(code, " ", h.Get("Link"))
		return nil
	}})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://chat.localhost/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); string(text) != "body" || <-hints != "103 </a>" {
		t.Errorf("the answer is %q", text)
	}
}

func TestTrailersOfAnAnswerWithoutARequestBody(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	w.routes(chat(handled(t, "1.1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Sum")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("Sum", "7")
		w.Header().Set(http.TrailerPrefix+"More", "8")
	})))
	resp, text, err := w.send("GET", "http://chat.localhost/", "")
	if err != nil || text != "body" || resp.Trailer.Get("Sum") != "7" || resp.Trailer.Get("More") != "8" {
		t.Errorf("%q %v %v", text, resp.Trailer, err)
	}
}

// TestBadHeads: an answer whose head has no end, or changes the protocol unasked, is not passed on, and
// its request not sent again.
func TestBadHeads(t *testing.T) {
	t.Parallel()
	says := map[string]string{"long": "longer than 1 MiB", "switched": "changes the protocol", "no HTTP": "is not one of HTTP"}
	for name, answer := range map[string]string{
		"long":     "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
		"switched": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n",
		"no HTTP":  "SSH-2.0-OpenSSH_9.2\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startGateway(t, gateway.Config{})
			var sent atomic.Int32
			w.routes(chat(rawBackend(t, "1.1", func(c net.Conn, _ *http.Request) {
				sent.Add(1)
				_, _ = io.WriteString(c, answer)
				_, _ = io.Copy(io.Discard, c) // the gateway ends it
			})))
			if status, text, _ := w.get("http://chat.localhost/"); status != 502 || strings.Contains(text, "xxx") || !strings.Contains(text, says[name]) || sent.Load() != 1 {
				t.Errorf("%d, sent %d times: %.200s", status, sent.Load(), text)
			}
		})
	}
}

// TestClientThatGoesEndsItsRequest: the replica sees the end of its connection, before and amid the answer.
func TestClientThatGoesEndsItsRequest(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n"} {
		w := startGateway(t, gateway.Config{})
		begun, ended := make(chan struct{}), make(chan struct{})
		w.routes(chat(rawBackend(t, "1.1", func(c net.Conn, _ *http.Request) {
			_, _ = io.WriteString(c, head)
			close(begun)
			_, _ = io.Copy(io.Discard, c)
			close(ended)
		})))
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://chat.localhost/", nil)
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if resp, err := w.client.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}()
		<-begun
		leave()
		<-gone
		<-ended
		w.source.waitLoad(t, "nothing in flight", func(l api.GatewayLoad) bool { return len(l.Services) == 1 && l.Services[0].InFlight["1.1"] == 0 })
	}
}
