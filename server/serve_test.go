package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/auth/token"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// running is a server on a real socket and a real port.
type running struct {
	*Server
	plane  *plane
	socket string
	url    string
	stop   func()
	log    *lines
}

// lines is a log that a test reads.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// people are the users of the test's machine.
var people = map[string]user.User{
	"anna": {Name: "anna", UID: 2001, GID: 2001, Known: true},
	"ben":  {Name: "ben", UID: 2002, GID: 2002, Known: true},
}

func lookup(key string, _ bool) (user.User, error) {
	for _, u := range people {
		if u.Name == key || job.ID(u.UID).String() == key {
			return u, nil
		}
	}
	return user.User{}, fault.New(fault.NotFound, "there is no user %s", key)
}

// start runs a server; set changes its configuration.
func start(t testing.TB, p *plane, set func(*Config)) *running {
	t.Helper()
	out := &running{plane: p, socket: filepath.Join(t.TempDir(), "cox.sock"), log: &lines{}}
	cfg := Config{
		Plane: p, Name: "lab", Version: "1.2.3", Users: &user.Users{Lookup: lookup},
		Log:   slog.New(slog.NewTextHandler(out.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Rules: &admission.Rules{Partitions: []admission.Partition{{Name: "main", Default: true, Nodes: []string{"v1", "v2", "v3", "v4"}}}},
	}
	if set != nil {
		set(&cfg)
	}
	out.Server = New(cfg)
	sock, err := transport.ListenSocket(out.socket)
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := transport.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out.url = "http://" + tcp.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- out.Serve(ctx, sock, tcp) }()
	var once sync.Once
	out.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(out.stop)
	return out
}

// admin is a client on the socket: the test's own user, who is the server's.
func (r *running) admin(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Socket: r.socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// token makes a token of a user, changed by set, and returns its secret.
func (r *running) token(t testing.TB, name string, set func(*state.Token)) string {
	t.Helper()
	m, err := token.New()
	if err != nil {
		t.Fatal(err)
	}
	u := people[name]
	tok := state.Token{ID: m.ID, Hash: m.Hash, Name: name, UID: u.UID, GID: u.GID, Expires: time.Now().Add(time.Hour)}
	if set != nil {
		set(&tok)
	}
	if err := r.plane.PutToken(t.Context(), job.Actor{}, tok); err != nil {
		t.Fatal(err)
	}
	return m.Secret
}

// as is a client over TCP with a token of a user.
func (r *running) as(t testing.TB, name string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: r.url, Token: r.token(t, name, nil)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// ask sends a request by hand.
func (r *running) ask(t testing.TB, method, path, secret, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// refusal checks that an answer is a problem of a kind with text and a remedy.
func refusal(t *testing.T, what string, resp *http.Response, body string, status int, kind fault.Kind, want string) {
	t.Helper()
	var e api.Error
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Errorf("%s: %s %q is no problem: %v", what, resp.Status, body, err)
		return
	}
	if resp.StatusCode != status || e.Status != status || e.Title != kind.String() || !strings.Contains(e.Detail, want) || e.Remedy == "" ||
		resp.Header.Get("Content-Type") != transport.ProblemType {
		t.Errorf("%s: %s %s\n%s", what, resp.Status, resp.Header.Get("Content-Type"), body)
	}
}

const script = "#!/bin/bash\n#SBATCH --job-name=train --nodes=2\n#SBATCH -t 10\nsrun hostname\n"

func request() *api.Submit {
	return &api.Submit{Form: api.FormSbatch, File: "train.sbatch", Text: script, Dir: "/home/anna", Host: "login", Environ: []string{"A=1", "B=2"}}
}

func TestAWholeLife(t *testing.T) {
	r := start(t, newPlane(), nil)
	c, ctx := r.as(t, "anna"), t.Context()
	got, err := c.Submit(ctx, request())
	if err != nil || got.ID != 1 || got.Name != "train" {
		t.Fatalf("%+v, %v", got, err)
	}
	j, err := c.Job(ctx, "1")
	if err != nil || j.Name != "1" || j.State != "PENDING" || j.Spec.Owner.User != "anna" || j.Spec.Owner.UID != 2001 || j.Spec.Source.Host != "login" {
		t.Fatalf("%+v, %v", j, err)
	}
	if b, err := c.Script(ctx, "1"); err != nil || string(b) != script {
		t.Errorf("script %q, %v", b, err)
	}
	if env, err := c.Environment(ctx, "1"); err != nil || len(env) != 2 || env[1] != "B=2" {
		t.Errorf("environment %q, %v", env, err)
	}
	if w, err := c.Why(ctx, "1"); err != nil || len(w.Lines) != 1 || !strings.Contains(w.Lines[0], "1 job before it") {
		t.Errorf("why %+v, %v", w, err)
	}
	ended := make(chan *api.Job, 1)
	go func() {
		j, err := c.Wait(ctx, "1")
		if err != nil {
			t.Error(err)
		}
		ended <- j
	}()
	ch, err := c.Change(ctx, &api.Change{Select: api.Select{IDs: []string{"1"}}, Verb: api.VerbCancel})
	if err != nil || ch.Changed != 1 || ch.Matched != 1 {
		t.Fatalf("%+v, %v", ch, err)
	}
	if j := <-ended; j == nil || j.State != "CANCELLED" {
		t.Errorf("waited for %+v", j)
	}
	info, err := c.Info(ctx)
	if err != nil || info.You.Name != "anna" || info.You.Via != "token" || info.You.Admin || info.Name != "lab" {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestTheSocketKnowsWhoAsks(t *testing.T) {
	r := start(t, newPlane(), nil)
	info, err := r.admin(t).Info(t.Context())
	if err != nil || info.You.UID != uint32(os.Getuid()) || info.You.Via != "socket" || !info.You.Admin {
		t.Errorf("%+v, %v", info, err)
	}
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /v1/jobs HTTP/1.1\r\nHost: cox\r\nAuthorization: Bearer cox_x\r\nConnection: close\r\n\r\n")
	b, _ := io.ReadAll(conn)
	if !strings.Contains(string(b), "401 Unauthorized") {
		t.Errorf("a damaged token on the socket: %s", b)
	}
}
