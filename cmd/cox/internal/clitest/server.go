package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Server is as much of a server as a command asks: a few jobs, and what it was asked.
type Server struct {
	*httptest.Server

	root   func(*cli.App) *cobra.Command
	Mux    *http.ServeMux
	mu     sync.Mutex
	Asked  []string // METHOD path?query
	bodies []string
}

// NewServer starts a server for the commands of root.
func NewServer(t *testing.T, root func(*cli.App) *cobra.Command) *Server {
	t.Helper()
	f := &Server{root: root, Mux: http.NewServeMux()}
	f.Answer("GET /v1", func(*http.Request) (any, error) {
		return api.ServerInfo{Name: "main", Version: "0.9", API: "1.0", Host: "login1", You: api.Identity{Name: "anna"}, Change: 41, Started: time.Now(), Now: time.Now()}, nil
	})
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body) // a client that has gone is seen by the answer
		r.Body = http.NoBody
		f.mu.Lock()
		f.Asked = append(f.Asked, r.Method+" "+r.URL.RequestURI())
		f.bodies = append(f.bodies, body.String())
		f.mu.Unlock()
		f.Mux.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	t.Cleanup(f.CloseClientConnections)
	return f
}

// Requests are what was asked so far: METHOD path?query.
func (f *Server) Requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.Asked)
}

// Answer serves a value, or an error as the API writes it.
func (f *Server) Answer(pattern string, v func(r *http.Request) (any, error)) {
	f.Mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.VersionHeader, "1.0")
		out, err := v(r)
		if err != nil {
			e := api.ErrorOf(err)
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(e.Status)
			out = e
		} else {
			w.Header().Set("Content-Type", "application/json")
		}
		_ = json.NewEncoder(w).Encode(out) // a client that has gone
	})
}

// Text serves bytes.
func (f *Server) Text(pattern, body string) {
	f.Mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
}

// Last is the last request that was asked with its body read into v.
func (f *Server) Last(t *testing.T, v any) string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.Asked) == 0 {
		t.Fatal("nothing was asked")
	}
	n := len(f.Asked) - 1
	if v != nil {
		if err := json.Unmarshal([]byte(f.bodies[n]), v); err != nil {
			t.Fatalf("%s: %v", f.Asked[n], err)
		}
	}
	return f.Asked[n]
}

// Ran is what a command did.
type Ran struct {
	Out, Err string
	Code     int
}

// Run runs a command of cox in this process against a server.
func Run(t *testing.T, root func(*cli.App) *cobra.Command, server, stdin string, args ...string) Ran {
	t.Helper()
	var out, err bytes.Buffer
	a := cli.New()
	a.In, a.Out, a.Err = strings.NewReader(stdin), &out, &err
	a.Now = func() time.Time { return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC) }
	ctx := t.Context()
	if ctx.Err() != nil { // in a Cleanup
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // of a cluster on a machine under load
	defer cancel()
	cox := root(a)
	if cmd, _, err := cox.Find(args); server != "" && (err != nil || !cli.IsLocal(cmd)) {
		args = append([]string{"--server", server}, args...)
	}
	code := a.Execute(ctx, cox, args)
	return Ran{out.String(), err.String(), code}
}

// Cox runs a command of cox against the server.
func (f *Server) Cox(t *testing.T, args ...string) Ran {
	t.Helper()
	return Run(t, f.root, f.URL, "", args...)
}

// Check compares an outcome; a text that begins with ~ needs only to be contained.
func (r Ran) Check(t *testing.T, code int, out, err string) {
	t.Helper()
	for _, c := range []struct{ what, got, want string }{{"standard output", r.Out, out}, {"standard error", r.Err, err}} {
		if want, part := strings.CutPrefix(c.want, "~"); part && !strings.Contains(c.got, want) || !part && c.got != c.want {
			t.Errorf("%s is\n%s\nwant\n%s", c.what, c.got, c.want)
		}
	}
	if r.Code != code {
		t.Errorf("exit %d, want %d", r.Code, code)
	}
}

// Job is a job in a state.
func Job(name, state string, exit int) api.Job {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	j := api.Job{
		ID: 7, Name: name, State: state, Exit: job.ExitCode{Status: exit}, Submitted: at, Attempt: 1,
		Spec: &job.Spec{Name: "train", Owner: job.Owner{User: "anna"}, Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1}}}},
	}
	if state != "PENDING" {
		j.Started = at.Add(time.Minute)
	}
	switch state {
	case "PENDING", "RUNNING", "SUSPENDED":
	default:
		j.Ended = at.Add(2 * time.Minute)
	}
	return j
}

// JobNotFound is the error about a job that does not exist.
func JobNotFound(name string) error {
	return fault.New(fault.NotFound, "there is no job %s", name).Advise("live jobs: cox queue")
}

// WriteRows are rows of text in the columns that a request asks for.
func WriteRows(w http.ResponseWriter, r *http.Request, rows ...map[string]string) {
	for _, row := range rows {
		var b []byte
		for i, col := range strings.Split(r.URL.Query().Get("columns"), ",") {
			if i > 0 {
				b = append(b, '\t')
			}
			b = api.AppendTSV(b, row[col])
		}
		fmt.Fprintf(w, "%s\n", b)
	}
}

// ServeRows serves rows of the job list.
func ServeRows(rows ...map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { WriteRows(w, r, rows...) }
}

// ServeNothing never answers.
func ServeNothing(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// WriteFile writes a file for a test and returns its path.
func WriteFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Root is cox with the commands of some packages.
func Root(commands ...func(*cli.App) []*cobra.Command) func(*cli.App) *cobra.Command {
	return func(a *cli.App) *cobra.Command {
		root := a.Root()
		for _, c := range commands {
			root.AddCommand(c(a)...)
		}
		return root
	}
}
