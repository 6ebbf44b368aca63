package gateway_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/gateway"
)

// TestHandOverLosesNothing: clients that keep their connections ask all the while one gateway takes
// over from another on the same socket, by HTTP/1 and HTTP/2. None fails, a stream of before goes on,
// and the older gateway ends when its clients have gone.
//
// Seen to fail with: a gateway that closes idle connections at once.
func TestHandOverLosesNothing(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	b := handled(t, "1.1", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path != "/stream" {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-more
		_, _ = io.WriteString(w, "data: 2\n\n")
	})
	routes := api.GatewayRoutes{Version: 1, Reset: true, Services: []api.ServiceRoute{chat(b)}}
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := first.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	second, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(l net.Listener) (*gateway.Server, <-chan error) {
		g, err := gateway.New(gateway.Config{Source: newSource()})
		if err != nil {
			t.Fatal(err)
		}
		g.Apply(routes)
		ended := make(chan error, 1)
		go func() { ended <- g.Serve(t.Context(), l) }()
		return g, ended
	}
	older, ended := begin(first)
	w := &world{t: t, addr: first.Addr().String()}
	stream := dialStream(t, w.addr)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var asking sync.WaitGroup
	var asked atomic.Int64
	for i := range 8 {
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", w.addr)
		}}}
		if i%4 == 3 {
			client = w.plainHTTP2()
		}
		asking.Go(func() {
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				resp, err := client.Post("http://chat.localhost/", "text/plain", strings.NewReader("question"))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if asked.Add(1); resp.StatusCode != http.StatusOK {
					t.Error(resp.Status)
					return
				}
			}
		})
	}
	awaitMore := func() {
		for until := asked.Load() + 400; asked.Load() < until && !t.Failed(); {
			<-time.After(time.Millisecond)
		}
	}
	awaitMore()
	_, secondEnded := begin(second)
	older.HandOver()
	awaitMore()
	close(more)
	if text, err := io.ReadAll(stream); !strings.Contains(string(text), "data: 2") {
		t.Errorf("the rest of the stream is %q, %v", text, err)
	}
	if err := <-ended; err != nil { // although clients go on asking
		t.Error(err)
	}
	awaitMore()
	stop()
	asking.Wait()
	select {
	case err := <-secondEnded:
		t.Errorf("the second gateway has ended: %v", err)
	default:
	}
}

// dialStream begins an event stream and returns the rest of it.
func dialStream(t *testing.T, address string) io.Reader {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, "GET /stream HTTP/1.1\r\nHost: chat.localhost\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	for line := ""; !strings.HasPrefix(line, "data: 1"); {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// TestHandOverIsEnded: a gateway that lets a stream end after another has taken over ends like any other
// when it is told to.
func TestHandOverIsEnded(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{Limits: gateway.Limits{Leave: 50 * time.Millisecond, Idle: 10 * time.Millisecond}})
	w.routes(chat(handled(t, "1.1", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})))
	stream := dialStream(t, w.addr)
	w.g.HandOver()
	for { // it takes no connections any more
		c, err := net.Dial("tcp", w.addr)
		if err != nil {
			break
		}
		_ = c.Close()
	}
	w.source.waitLoad(t, "the stream is in flight still", func(l api.GatewayLoad) bool { return l.Services[0].InFlight["1.1"] == 1 })
	w.stop()
	if _, err := io.ReadAll(stream); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
}

// TestReplicasOutOfReach: replicas that should be ready and take no connection may be out of reach.
func TestReplicasOutOfReach(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{Limits: gateway.Limits{Hold: 50 * time.Millisecond}})
	w.routes(chat(deadBackend(t, "1.1", 1)))
	if status, text, _ := w.get("http://chat.localhost/"); status != 503 || !strings.Contains(text, "1 of 1 with an address should be ready, but take no connections") || !strings.Contains(text, "cox pool check") {
		t.Errorf("%d %s", status, text)
	}
}
