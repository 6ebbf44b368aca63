package gateway_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/gateway"
)

// source is a server that the test plays. While it is dead it neither tells routes nor takes load.
type source struct {
	mu    sync.Mutex
	lines []api.GatewayRoutes
	dead  bool
	kick  chan struct{}
	loads chan api.GatewayLoad // every post, as long as somebody reads
	cut   context.CancelFunc
}

func newSource() *source {
	return &source{kick: make(chan struct{}), loads: make(chan api.GatewayLoad, 1000)}
}

func (s *source) tell(r api.GatewayRoutes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, r)
	close(s.kick)
	s.kick = make(chan struct{})
}

func (s *source) die() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
	if s.cut != nil {
		s.cut()
	}
}

var errDead = fmt.Errorf("connection refused")

func (s *source) WatchRoutes(ctx context.Context, f func(api.GatewayRoutes) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for at := 0; ; at++ {
		s.mu.Lock()
		s.cut = cancel
		dead := s.dead
		for at >= len(s.lines) && !dead {
			kick := s.kick
			s.mu.Unlock()
			select {
			case <-kick:
			case <-ctx.Done():
				return errDead
			}
			s.mu.Lock()
			dead = s.dead
		}
		if dead {
			s.mu.Unlock()
			return errDead
		}
		line := s.lines[at]
		s.mu.Unlock()
		if err := f(line); err != nil {
			return err
		}
	}
}

func (s *source) PutLoad(ctx context.Context, l api.GatewayLoad) error {
	s.mu.Lock()
	dead := s.dead
	s.mu.Unlock()
	if dead {
		return errDead
	}
	select {
	case s.loads <- l:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitLoad returns the first load that is posted and as wanted.
func (s *source) waitLoad(t *testing.T, what string, wanted func(api.GatewayLoad) bool) api.GatewayLoad {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case l := <-s.loads:
			if wanted(l) {
				return l
			}
		case <-late:
			t.Fatalf("no load was posted with: %s", what)
		}
	}
}

// world is a gateway that runs.
type world struct {
	t      *testing.T
	g      *gateway.Server
	source *source
	addr   string
	stop   func()
	client *http.Client
	next   uint64
}

func startGateway(t *testing.T, cfg gateway.Config) *world {
	t.Helper()
	w := &world{t: t, source: newSource()}
	if cfg.Source == nil {
		cfg.Source = w.source
	}
	if testing.Verbose() {
		cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	g, err := gateway.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, l) }()
	w.g, w.addr = g, l.Addr().String()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the gateway ended with %v", err)
		}
	})
	tr := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", w.addr)
		},
		MaxIdleConnsPerHost: 100,
	}
	w.client = &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() { tr.CloseIdleConnections(); w.stop() })
	return w
}

// routes tells the gateway routes and waits until it has taken them over.
func (w *world) routes(list ...api.ServiceRoute) {
	w.t.Helper()
	w.tell(api.GatewayRoutes{Reset: true, Services: list})
}

func (w *world) tell(r api.GatewayRoutes) {
	w.t.Helper()
	w.next++
	r.Version = w.next
	w.source.tell(r)
	w.source.waitLoad(w.t, fmt.Sprintf("routes %d", r.Version), func(l api.GatewayLoad) bool { return l.Routes >= r.Version })
}

// get asks for a URL like http://chat.localhost/path.
func (w *world) get(url string, header ...string) (int, string, http.Header) {
	w.t.Helper()
	return w.do(http.MethodGet, url, "", header...)
}

func (w *world) do(method, url, body string, header ...string) (int, string, http.Header) {
	w.t.Helper()
	resp, text, err := w.send(method, url, body, header...)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, text, resp.Header
}

func (w *world) send(method, url, body string, header ...string) (*http.Response, string, error) {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, url, r)
	if err != nil {
		return nil, "", err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

// replica is a backend that answers with its name.
func replica(t *testing.T, id string, revision uint32) api.Backend {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, id)
	}))
	t.Cleanup(s.Close)
	return backendOf(s, id, revision)
}

func backendOf(s *httptest.Server, id string, revision uint32) api.Backend {
	return api.Backend{ID: id, Address: s.Listener.Addr().String(), Revision: revision, Ready: true}
}

// deadBackend has an address at which nobody listens.
func deadBackend(t *testing.T, id string, revision uint32) api.Backend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := api.Backend{ID: id, Address: l.Addr().String(), Revision: revision, Ready: true}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

func chat(backends ...api.Backend) api.ServiceRoute {
	return api.ServiceRoute{Service: "team/chat", Host: "chat.localhost", Backends: backends, Want: 2}
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
