package servertest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/auth/token"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// Running is a server on a real socket and a real port.
type Running struct {
	*transport.Server
	Plane  *Plane
	Socket string
	URL    string
	Stop   func()
	Logged *Log
}

// Log is a log that a test reads.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// people are the users of the test's machine.
var people = map[string]user.User{
	"anna": {Name: "anna", UID: 2001, GID: 2001, Known: true},
	"ben":  {Name: "ben", UID: 2002, GID: 2002, Known: true},
}

// Lookup finds one of the users of the test's machine by name or number.
func Lookup(key string, _ bool) (user.User, error) {
	for _, u := range people {
		if u.Name == key || job.ID(u.UID).String() == key {
			return u, nil
		}
	}
	return user.User{}, fault.New(fault.NotFound, "there is no user %s", key)
}

// Listen serves on a socket and a port until the test or Stop ends it.
func Listen(t testing.TB, p *Plane, log *Log, s *transport.Server, serve func(context.Context, ...net.Listener) error) *Running {
	t.Helper()
	out := &Running{Server: s, Plane: p, Socket: filepath.Join(t.TempDir(), "cox.sock"), Logged: log}
	sock, err := transport.ListenSocket(out.Socket)
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := transport.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out.URL = "http://" + tcp.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, sock, tcp) }()
	var once sync.Once
	out.Stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(out.Stop)
	return out
}

// Logger writes everything to the log.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Admin is a client on the socket: the test's own user, who is the server's.
func (r *Running) Admin(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Socket: r.Socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Token makes a token of a user, changed by set, and returns its secret.
func (r *Running) Token(t testing.TB, name string, set func(*state.Token)) string {
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
	if err := r.Plane.PutToken(t.Context(), job.Actor{}, tok); err != nil {
		t.Fatal(err)
	}
	return m.Secret
}

// As is a client over TCP with a token of a user.
func (r *Running) As(t testing.TB, name string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: r.URL, Token: r.Token(t, name, nil)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Ask sends a request by hand.
func (r *Running) Ask(t testing.TB, method, path, secret, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.URL+path, strings.NewReader(body))
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

// CheckRefusal checks that an answer is a problem of a kind with text and a remedy.
func CheckRefusal(t *testing.T, what string, resp *http.Response, body string, status int, kind fault.Kind, want string) {
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

// Script is a batch script of two nodes.
const Script = "#!/bin/bash\n#SBATCH --job-name=train --nodes=2\n#SBATCH -t 10\nsrun hostname\n"

// Request is a submission of Script by anna.
func Request() *api.Submit {
	return &api.Submit{Form: api.FormSbatch, File: "train.sbatch", Text: Script, Dir: "/home/anna", Host: "login", Environ: []string{"A=1", "B=2"}}
}

// DialWatch opens a watch by hand and reads its head.
func (r *Running) DialWatch(t testing.TB, path string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("unix", r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: cox\r\n\r\n", path)
	br := bufio.NewReader(conn)
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, ": here") {
			return conn, br
		}
	}
}

// WaitUntil waits for what the server counts and tells nobody: who waits, who watches, who has gone.
func WaitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// ReadText reads an answer to its end.
func ReadText(t testing.TB, r io.ReadCloser, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
