package transport

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/token"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// running is a server with two routes, on a real socket and a real port.
type running struct {
	*Server
	socket, url string
	tokens      tokens
}

type tokens map[string]state.Token

func (k tokens) TokenByID(id string) (state.Token, bool) { t, ok := k[id]; return t, ok }

// people are the users of the test's machine.
var people = map[string]user.User{"anna": {Name: "anna", UID: 2001, GID: 2001, Known: true}, "ben": {Name: "ben", UID: 2002, GID: 2002, Known: true}}

func start(t *testing.T, set func(*Config)) *running {
	t.Helper()
	r := &running{socket: filepath.Join(t.TempDir(), "s"), tokens: tokens{}}
	cfg := Config{Tokens: r.tokens, Log: slog.New(slog.DiscardHandler), Now: time.Now, Stall: 10 * time.Second, Patience: 10 * time.Second}
	cfg.Users = &user.Users{Lookup: func(key string, _ bool) (user.User, error) {
		for _, u := range people {
			if u.Name == key || fmt.Sprint(u.UID) == key {
				return u, nil
			}
		}
		return user.User{}, fault.New(fault.NotFound, "there is no user %s", key)
	}}
	if set != nil {
		set(&cfg)
	}
	r.Server = New(cfg)
	AddStreamRoute(r.Server, Route{Method: http.MethodGet, Path: "/healthz", Verb: auth.Health, ID: "healthz"}, func(c *Call, _ *Nothing) error {
		c.WriteBody(http.StatusOK, "text/plain", []byte("ok\n"))
		return nil
	})
	AddRoute(r.Server, Route{Method: http.MethodGet, Path: "/v1/jobs", Verb: auth.SeePools, ID: "list"}, func(*Call, *Nothing) (*None, error) { return nil, nil })
	AddRoute(r.Server, Route{Method: http.MethodPost, Path: "/v1/jobs", Verb: auth.Submit, ID: "submit", Body: TypeOf[api.Select]()}, func(c *Call, _ *Nothing) (*None, error) {
		_, err := DecodeBody[api.Select](c)
		return nil, err
	})
	sock, err := ListenSocket(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "http://" + tcp.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx, sock, tcp) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

// token makes a token of a user and returns its secret. No request runs meanwhile.
func (r *running) token(t *testing.T, name string) string {
	t.Helper()
	m, err := token.New()
	if err != nil {
		t.Fatal(err)
	}
	u := people[name]
	r.tokens[m.ID] = state.Token{ID: m.ID, Hash: m.Hash, Name: name, UID: u.UID, GID: u.GID, Expires: time.Now().Add(time.Hour)}
	return m.Secret
}

// post sends a request with a small body, which has to be answered.
func (r *running) post(t *testing.T, secret string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/v1/jobs", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Errorf("it was answered with %s", resp.Status)
	}
}

// overSocket sends a request over the socket, which has to be answered.
func (r *running) overSocket(t *testing.T) {
	t.Helper()
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", r.socket)
	}}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get("http://x/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("it was answered with %s", resp.Status)
	}
}

// TestOneUserCannotTakeEveryTurn begins more submissions than a user has places, and
// ends none of them.
func TestOneUserCannotTakeEveryTurn(t *testing.T) {
	r := start(t, nil)
	r.concurrency.mu.Lock()
	r.concurrency.most = 4
	r.concurrency.mu.Unlock()
	secret, ben := r.token(t, "anna"), r.token(t, "ben")
	var open []net.Conn
	slow := func(length int) net.Conn {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := fmt.Fprintf(c, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n{", secret, length); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range 12 {
		open = append(open, slow(1<<20))
	}
	until(t, "all are known", func() bool {
		r.concurrency.mu.Lock()
		defer r.concurrency.mu.Unlock()
		u := r.concurrency.of[2001]
		return u != nil && u.n == 12 && len(u.places) == 4
	})
	r.post(t, ben)
	for _, c := range open {
		_ = c.Close()
	}
	r.post(t, secret)
	until(t, "nobody is counted", func() bool {
		r.concurrency.mu.Lock()
		defer r.concurrency.mu.Unlock()
		return len(r.concurrency.of) == 0
	})
}

// until waits for what the server counts and tells nobody: who waits, who watches, who has gone.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// TestATurnThatDoesNotComeIsRefused: whoever waits is told, with the connection's end.
func TestATurnThatDoesNotComeIsRefused(t *testing.T) {
	r := start(t, func(c *Config) { c.Patience = 10 * time.Millisecond })
	r.concurrency.most = 1
	u := r.concurrency.addRequest(2001)
	u.places <- struct{}{}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/jobs", nil)
	req.Header.Set("Authorization", "Bearer "+r.token(t, "anna"))
	rec := httptest.NewRecorder()
	r.ServeHTTP(rec, req)
	if rec.Code != fault.Unavailable.HTTPStatus() || !strings.Contains(rec.Body.String(), "requests at once") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if rec.Header().Get("Connection") != "close" {
		t.Error("the connection goes on")
	}
}

// TestAnAdministratorIsOneAsLongAsHeIs: a stream sees what administrators see.
func TestAnAdministratorIsOneAsLongAsHeIs(t *testing.T) {
	r := start(t, func(c *Config) { c.Admins = []string{"anna"} })
	c := &Call{s: r.Server}
	c.ID.Via, c.ID.Name, c.ID.UID, c.ID.Admin = "socket", "anna", 2001, true
	if err := c.recheckSession(); err != nil {
		t.Error(err)
	}
	c.ID.Name, c.ID.UID = "ben", 2002
	if err := c.recheckSession(); err == nil {
		t.Error("somebody who is no administrator any more goes on as one")
	}
}
