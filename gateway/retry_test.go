package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/gateway"
)

// handled is a backend with a handler of the test's own.
func handled(t *testing.T, id string, h http.HandlerFunc) api.Backend {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return backendOf(s, id, 1)
}

func checkMode(t *testing.T, name string, mode os.FileMode) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != mode {
		t.Errorf("%s: %v %v", name, info.Mode(), err)
	}
}

// rawBackend takes connections and hands each to f.
func rawBackend(t *testing.T, id string, f func(net.Conn, *http.Request)) api.Backend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					f(c, r)
				}
			}()
		}
	}()
	return api.Backend{ID: id, Address: l.Addr().String(), Revision: 1, Ready: true}
}

func TestRefusedConnectionIsTriedElsewhere(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST", "DELETE", "PATCH"} {
		t.Run(method, func(t *testing.T) {
			w := startGateway(t, gateway.Config{})
			w.routes(chat(deadBackend(t, "1.1", 1), replica(t, "2.1", 1)))
			for range 20 {
				body := ""
				if method == "POST" {
					body = strings.Repeat("x", 200_000)
				}
				if status, text, _ := w.do(method, "http://chat.localhost/", body); status != 200 || text != "2.1" {
					t.Fatalf("%d %s", status, text)
				}
			}
		})
	}
}

func TestOnlyIdempotentRequestsWithoutABodyAreRepeated(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	var got atomic.Int32
	w.routes(chat(rawBackend(t, "1.1", func(_ net.Conn, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got.Add(1) // and no answer
	})))
	for _, c := range []struct {
		method, body string
		want         int32
	}{{"GET", "", 2}, {"DELETE", "", 2}, {"POST", "", 1}, {"POST", "body", 1}, {"PUT", "body", 1}, {"GET", "body", 1}} {
		got.Store(0)
		status, text, _ := w.do(c.method, "http://chat.localhost/", c.body)
		if status != 502 || got.Load() != c.want || !strings.Contains(text, "ended the connection without an answer") {
			t.Errorf("%s %q: %d, sent %d times, want %d: %s", c.method, c.body, status, got.Load(), c.want, text)
		}
	}
}

func TestRepeatedElsewhere(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	broken := rawBackend(t, "1.1", func(net.Conn, *http.Request) {})
	w.routes(chat(broken, replica(t, "2.1", 1)))
	for range 20 {
		if status, text, _ := w.get("http://chat.localhost/"); status != 200 || text != "2.1" {
			t.Fatalf("%d %s", status, text)
		}
	}
}

func TestRequestsAreHeld(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	r := chat()
	r.Asleep, r.Held = true, 2
	w.routes(r)
	answers := make(chan string, 2)
	for range 2 {
		go func() {
			_, text, err := w.send(http.MethodPost, "http://chat.localhost/", "body")
			if err != nil {
				text = err.Error()
			}
			answers <- text
		}()
	}
	w.source.waitLoad(t, "two held requests", func(l api.GatewayLoad) bool { return l.Services[0].Held == 2 })
	status, text, h := w.get("http://chat.localhost/")
	if status != 503 || h.Get("Retry-After") == "" || !strings.Contains(text, "is asleep and is being woken, and 2 requests wait already") {
		t.Errorf("one more than may be held: %d %q %s", status, h.Get("Retry-After"), text)
	}
	w.routes(chat(replica(t, "1.1", 1)))
	for range 2 {
		if text := <-answers; text != "1.1" {
			t.Errorf("a held request got %q", text)
		}
	}
}

func TestHeldRequestsGiveUp(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{Limits: gateway.Limits{Hold: 50 * time.Millisecond}})
	b := replica(t, "1.1", 1)
	b.Ready = false
	w.routes(chat(b))
	status, text, h := w.get("http://chat.localhost/")
	if status != 503 || h.Get("Retry-After") != "5" || !strings.Contains(text, "2 wanted, none of 1 with an address is ready") || !strings.Contains(text, "cox why team/chat") {
		t.Errorf("%d %q %s", status, h.Get("Retry-After"), text)
	}
}

func TestHeldWhileTheOnlyReplicaStartsAnew(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	dead := deadBackend(t, "1.1", 1)
	w.routes(chat(dead))
	answer := make(chan string, 1)
	go func() {
		_, text, err := w.send(http.MethodPost, "http://chat.localhost/", "body")
		if err != nil {
			text = err.Error()
		}
		answer <- text
	}()
	w.source.waitLoad(t, "a held request", func(l api.GatewayLoad) bool { return l.Services[0].Held == 1 })
	l, err := net.Listen("tcp", dead.Address)
	if err != nil {
		t.Skipf("another program took the port: %v", err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "again") })} //nolint:gosec // of a test
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	if text := <-answer; text != "again" {
		t.Errorf("the answer is %q", text)
	}
}

func TestServiceThatIsStoppedRefusesWhatIsHeld(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	w.routes(chat())
	answer := make(chan string, 1)
	go func() {
		_, text, err := w.send(http.MethodGet, "http://chat.localhost/", "")
		if err != nil {
			text = err.Error()
		}
		answer <- text
	}()
	w.source.waitLoad(t, "a held request", func(l api.GatewayLoad) bool { return l.Services[0].Held == 1 })
	w.routes()
	if text := <-answer; !strings.Contains(text, "service team/chat was stopped") {
		t.Errorf("the answer is %q", text)
	}
}

// TestRetryLeavesItsRevision: the only replica of a canary fails; the retry goes to another revision.
func TestRetryLeavesItsRevision(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	canary := handled(t, "2.1", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	canary.Revision = 2
	r := chat(replica(t, "1.1", 1), canary)
	r.Weights = map[uint32]int{1: 1, 2: 99}
	w.routes(r)
	for range 10 {
		if status, text, _ := w.get("http://chat.localhost/"); text != "1.1" {
			t.Fatalf("%d %q", status, text)
		}
	}
}
