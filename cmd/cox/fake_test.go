package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// fake is as much of a server as a command asks: a few jobs, and what it was asked.
type fake struct {
	*httptest.Server
	mux    *http.ServeMux
	mu     sync.Mutex
	asked  []string // METHOD path?query
	bodies []string
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{mux: http.NewServeMux()}
	f.answer("GET /v1", func(*http.Request) (any, error) {
		return api.ServerInfo{Name: "main", Version: "0.9", API: "1.0", Host: "login1", Change: 41, Started: time.Now(), Now: time.Now()}, nil
	})
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body) // a client that has gone is seen by the answer
		r.Body = http.NoBody
		f.mu.Lock()
		f.asked = append(f.asked, r.Method+" "+r.URL.RequestURI())
		f.bodies = append(f.bodies, body.String())
		f.mu.Unlock()
		f.mux.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	t.Cleanup(f.CloseClientConnections)
	return f
}

// answer serves a value, or an error as the API writes it.
func (f *fake) answer(pattern string, v func(r *http.Request) (any, error)) {
	f.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
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

// text serves bytes.
func (f *fake) text(pattern, body string) {
	f.mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
}

// last is the last request that was asked with its body read into v.
func (f *fake) last(t *testing.T, v any) string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		t.Fatal("nothing was asked")
	}
	n := len(f.asked) - 1
	if v != nil {
		if err := json.Unmarshal([]byte(f.bodies[n]), v); err != nil {
			t.Fatalf("%s: %v", f.asked[n], err)
		}
	}
	return f.asked[n]
}

// ran is what a command did.
type ran struct {
	out, err string
	code     int
}

// coxAt runs a command of cox in this process against a server.
func coxAt(t *testing.T, server, stdin string, args ...string) ran {
	t.Helper()
	var out, err bytes.Buffer
	a := newApp()
	a.in, a.out, a.err = strings.NewReader(stdin), &out, &err
	a.now = func() time.Time { return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC) }
	a.slurm = os.Executable // beside the tests is no other binary
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	code := a.execute(ctx, append([]string{"--server", server}, args...))
	return ran{out.String(), err.String(), code}
}

func (f *fake) cox(t *testing.T, args ...string) ran {
	t.Helper()
	return coxAt(t, f.URL, "", args...)
}

// check compares an outcome; a text that begins with ~ needs only to be contained.
func (r ran) check(t *testing.T, code int, out, err string) {
	t.Helper()
	for _, c := range []struct{ what, got, want string }{{"standard output", r.out, out}, {"standard error", r.err, err}} {
		if want, part := strings.CutPrefix(c.want, "~"); part && !strings.Contains(c.got, want) || !part && c.got != c.want {
			t.Errorf("%s is\n%s\nwant\n%s", c.what, c.got, c.want)
		}
	}
	if r.code != code {
		t.Errorf("exit %d, want %d", r.code, code)
	}
}

// jobOf is a job in a state.
func jobOf(name, state string, exit int) api.Job {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	j := api.Job{
		ID: 7, Name: name, State: state, Exit: job.ExitCode{Status: exit}, Submitted: at, Attempt: 1,
		Spec: &job.Spec{Name: "train", Owner: job.Owner{User: "anna"}, Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1}}}},
	}
	if state != "PENDING" {
		j.Started = at.Add(time.Minute)
	}
	if final(state) {
		j.Ended = at.Add(2 * time.Minute)
	}
	return j
}

func missing(name string) error {
	return fault.New(fault.NotFound, "there is no job %s", name).Advise("live jobs: cox queue")
}

// lines are rows of text in the columns that a request asks for.
func lines(w http.ResponseWriter, r *http.Request, rows ...map[string]string) {
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

func jobsFor(rows ...map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { lines(w, r, rows...) }
}

func jobsNever(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// decoder reads what stands in a header in base64.
func decoder(header string) io.Reader {
	return base64.NewDecoder(base64.StdEncoding, strings.NewReader(header))
}
