package security

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/token"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store"
)

// people are the users of the machine. gone was removed; his number is free.
var people = map[string]user.User{
	"anna": {Name: "anna", UID: 2001, GID: 2001, Known: true},
	"ben":  {Name: "ben", UID: 2002, GID: 2002, Known: true},
	"dora": {Name: "dora", UID: 2003, GID: 2003, Known: true},
}

func lookup(key string, _ bool) (user.User, error) {
	for _, u := range people {
		if u.Name == key || fmt.Sprint(u.UID) == key {
			return u, nil
		}
	}
	return user.User{}, fault.New(fault.NotFound, "there is no user %s", key)
}

// text is a log that a test reads while it is written.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *text) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *text) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// site is a real control plane over a fake engine, with two servers: one that shows
// jobs to everybody, and one that is private.
type site struct {
	t        testing.TB
	control  *control.Control
	socket   string
	url      string
	private  string // url of the private server
	log      *text
	document *server.Server
	serial   int
}

// output gives every owner one line of output.
type output struct{}

func (output) OpenLog(_ context.Context, owner job.Owner, _ string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("output of " + owner.User + "\n")), nil
}

func newSite(t testing.TB) *site {
	t.Helper()
	node := fleet.Node{Name: "v1", Pool: "local", State: fleet.Up, Parts: []string{"main"}, Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 32 * resource.GiB}}
	world := fake.NewWorld(fake.Config{Now: time.Now, Nodes: []fleet.Node{node}})
	e := world.Open()
	s := &site{t: t, log: &text{}, socket: filepath.Join(t.TempDir(), "cox.sock")}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	s.control, err = control.Open(t.Context(), control.Config{Store: &store.Memory{}, Pools: []pools.Pool{{Pool: fleet.Pool{Name: "local", Engine: "fake"}, Engine: e}}, Who: "test", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.control.Close(); err != nil {
			t.Error(err)
		}
		e.Close()
	})
	l, err := transport.ListenSocket(s.socket)
	if err != nil {
		t.Fatal(err)
	}
	s.url, s.document = s.serve(log, false, l)
	s.private, _ = s.serve(log, true)
	return s
}

// serve starts a server on a port of its own and more listeners.
func (s *site) serve(log *slog.Logger, private bool, more ...net.Listener) (string, *server.Server) {
	s.t.Helper()
	srv := server.New(server.Config{
		Plane: s.control, Name: "lab", Users: &user.Users{Lookup: lookup}, Policy: auth.Policy{Private: private}, Log: log, Output: output{},
		Rules: &admission.Rules{Partitions: []admission.Partition{{Name: "main", Default: true, Nodes: []string{"v1"}}}},
	})
	tcp, err := transport.ListenTCP("127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, append(more, tcp)...) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	return "http://" + tcp.Addr().String(), srv
}

// token makes an access token as an administrator would, changed by set.
func (s *site) token(name string, set func(*state.Token)) (id, secret string) {
	s.t.Helper()
	m, err := token.New()
	if err != nil {
		s.t.Fatal(err)
	}
	u := people[name]
	k := state.Token{ID: m.ID, Hash: m.Hash, Name: name, UID: u.UID, GID: u.GID, Expires: time.Now().Add(time.Hour)}
	if set != nil {
		set(&k)
	}
	revoked := k.Revoked
	k.Revoked = time.Time{}
	if err := s.control.PutToken(s.t.Context(), job.Actor{Name: "test"}, k); err != nil {
		s.t.Fatal(err)
	}
	if !revoked.IsZero() {
		if err := s.control.RevokeToken(s.t.Context(), job.Actor{Name: "test"}, k.ID); err != nil {
			s.t.Fatal(err)
		}
	}
	return m.ID, m.Secret
}

// identity is somebody who asks.
type identity struct {
	name   string
	url    string // where
	secret string // empty: none is shown
	header string // instead of a secret
	client *http.Client
	bad    bool // proves nobody
}

// identities are all kinds of callers. The objects of user and private are anna's.
func (s *site) identities() []identity {
	tcp := &http.Client{Transport: &http.Transport{}}
	unix := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
	}}}
	s.t.Cleanup(func() { tcp.CloseIdleConnections(); unix.CloseIdleConnections() })
	secret := func(name string, set func(*state.Token)) string { _, secret := s.token(name, set); return secret }
	other, err := token.New() // of another server
	if err != nil {
		s.t.Fatal(err)
	}
	return []identity{
		{name: "nobody", url: s.url, client: tcp, bad: true},
		{name: "wrong", url: s.url, client: tcp, secret: other.Secret, bad: true},
		{name: "expired", url: s.url, client: tcp, bad: true, secret: secret("anna", func(k *state.Token) { k.Expires = time.Now().Add(-time.Second) })},
		{name: "revoked", url: s.url, client: tcp, bad: true, secret: secret("anna", func(k *state.Token) { k.Revoked = time.Now() })},
		{name: "removed", url: s.url, client: tcp, bad: true, secret: secret("gone", func(k *state.Token) { k.UID, k.Admin = 2001, true })},
		{name: "user", url: s.url, client: tcp, secret: secret("anna", nil)},
		{name: "private", url: s.private, client: tcp, secret: secret("anna", nil)},
		{name: "admin", url: s.private, client: tcp, secret: secret("dora", func(k *state.Token) { k.Admin = true })},
		{name: "root", url: "http://cox", client: unix},
	}
}

// ask sends a request; see ask.
func (s *site) ask(id *identity, method, path, body string) (*http.Response, string) {
	s.t.Helper()
	return ask(s.t, id, method, path, body)
}

// ask sends a request. Of an answer without end only the beginning is read.
func ask(t testing.TB, id *identity, method, path, body string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // cleanups ask too
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, id.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if id.secret != "" {
		req.Header.Set("Authorization", "Bearer "+id.secret)
	}
	if id.header != "" {
		req.Header.Set("Authorization", id.header)
	}
	resp, err := id.client.Do(req)
	if err != nil {
		t.Fatalf("%s %s as %s: %v", method, path, id.name, err)
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, ""
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s as %s: %v", method, path, id.name, err)
	}
	return resp, string(b)
}

// submit is a job of a user that waits, held by him, under a name of its own.
func (s *site) submit(owner string) (id job.ID, name string) {
	s.t.Helper()
	s.serial++
	u := people[owner]
	name = fmt.Sprintf("%s-%d", owner, s.serial)
	spec := &job.Spec{
		Owner: job.Owner{User: owner, UID: u.UID, GID: u.GID}, Name: name, WorkDir: "/", Held: true, TimeLimit: time.Hour,
		Groups:  []job.TaskGroup{{Tasks: job.Count{Want: 1}, Nodes: job.Range{Min: 1, Max: 1}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.OneCPU}}}},
		Program: job.Program{Kind: job.Batch}, Requeue: true, Partitions: []string{"main"},
	}
	got, err := s.control.Submit(s.t.Context(), control.Submission{
		Spec: spec, Script: []byte("#!/bin/sh\n# script of " + name + "\n"), Env: []string{"OF=" + name}, By: job.Actor{Name: owner, UID: u.UID, From: "test"},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return got.ID, name
}
