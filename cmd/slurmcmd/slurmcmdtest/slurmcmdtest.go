// Package slurmcmdtest is a small server for the tests of Slurm's command names: it
// answers the few routes that they ask from lists in memory, over a real unix socket,
// and keeps what was asked.
package slurmcmdtest

import (
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
)

// Now is the time of every command.
var Now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Func makes an answer of a request's body. An answer is sent as JSON, a string as
// text, an *api.Error as one.
type Func func(body string) any

// Server is the server with what it knows.
type Server struct {
	Jobs       []map[string]string // by column (package column)
	Nodes      []api.Node
	Partitions []api.Partition
	Environ    []string       // variables of commands, beside USER and HOME
	Answer     map[string]any // of "POST /v1/jobs" and the like: see Func

	mu      sync.Mutex
	answers map[string]any // of the running command
	asked   []string       // "GET /v1/jobs?users=root"
	bodies  []string
	socket  string
}

// New starts the server; it ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{Answer: map[string]any{}, socket: filepath.Join(t.TempDir(), "s")}
	ln, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ln)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return s
}

// Asked are the requests so far.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Body is the body of the last request that had one.
func (s *Server) Body() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bodies) == 0 {
		return ""
	}
	return s.bodies[len(s.bodies)-1]
}

// Address is where the server listens, as COX_SERVER takes it.
func (s *Server) Address() string { return "unix://" + s.socket }

// Result is how a command ended.
type Result struct {
	Out, Err string
	Code     int
}

// Run runs a command against the server; in is its standard input.
func (s *Server) Run(main func([]string, slurmcmd.Stdio) int, in string, args ...string) Result {
	// The race detector does not see that a request comes after its command's begin.
	s.mu.Lock()
	s.answers = maps.Clone(s.Answer)
	s.mu.Unlock()
	var out, errs strings.Builder
	code := main(args, slurmcmd.Stdio{
		In: strings.NewReader(in), Out: &out, Err: &errs, Environ: append([]string{"USER=anna", "HOME=/home/anna"}, s.Environ...),
		Server: func() (*fastclient.Client, error) {
			return fastclient.New(address.Address{Socket: s.socket, URL: "http://cox"}), nil
		},
		Now: func() time.Time { return Now },
	})
	return Result{out.String(), errs.String(), code}
}

// ServeHTTP answers.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	if len(body) > 0 {
		s.bodies = append(s.bodies, string(body))
	}
	a, ok := s.answers[r.Method+" "+r.URL.Path]
	s.mu.Unlock()
	if f, ok := a.(Func); ok {
		a = f(string(body))
	}
	if ok {
		writeAnswer(w, a)
		return
	}
	switch r.URL.Path {
	case "/v1/jobs", "/v1/history":
		s.listJobs(w, r)
	case "/v1":
		writeAnswer(w, api.ServerInfo{Name: "lab", Host: "login1", Version: "test", Started: Now.Add(-time.Hour)})
	case "/v1/settings":
		writeAnswer(w, api.Settings{
			StateDir: "/var/lib/coxswain", Listen: "127.0.0.1:7461", Memory: 300, Grace: 30, Unkillable: 60, MaxArray: 1001, HookTimeout: 120, Epilog: "/etc/epilog",
			Accounts: true, Requeue: true, Backfill: true, PreemptBy: []string{"qos"}, PreemptMode: "checkpoint", PreemptExempt: 600,
			Weights: map[string]uint32{"age": 1000, "tres/gpu": 50}, PriorityMaxAge: 604800, HalfLife: 1209600, UsagePeriod: 300,
		})
	case "/v1/licenses":
		writeAnswer(w, api.Licenses{Licenses: []api.License{{Name: "matlab", Total: 4}}})
	case "/v1/nodes":
		writeAnswer(w, api.Nodes{Nodes: s.Nodes})
	case "/v1/partitions":
		writeAnswer(w, api.Partitions{Partitions: s.Partitions})
	case "/v1/reservations":
		writeAnswer(w, api.Reservations{Reservations: []api.Reservation{}})
	default:
		writeAnswer(w, &api.Error{Status: 404, Title: "not found", Detail: "there is no " + r.URL.Path})
	}
}

func writeAnswer(w http.ResponseWriter, a any) {
	status, media := 200, "application/json"
	if e, ok := a.(*api.Error); ok {
		status, media = e.Status, "application/problem+json"
	}
	if text, ok := a.(string); ok {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, text)
		return
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a)
}

// listJobs answers with the jobs that have one of the ids and states that are asked for.
func (s *Server) listJobs(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	split := func(name string) []string {
		if v := q.Get(name); v != "" && v != "all" {
			return slurmcmd.Split(v)
		}
		return nil
	}
	ids, states, users, parts, cols := split("ids"), split("states"), split("users"), split("partitions"), split("columns")
	pools := split("pools")
	var b []byte
	n := 0
	for _, j := range s.Jobs {
		if len(pools) > 0 && !slices.Contains(pools, j["pool"]) || len(ids) > 0 && !slices.Contains(ids, j["id"]) && !slices.Contains(ids, j["name"]) && !slices.Contains(ids, j["array_job"]) ||
			len(parts) > 0 && !slices.Contains(parts, j["partition"]) || len(states) > 0 && !slices.Contains(states, j["state"]) || len(users) > 0 && !slices.Contains(users, j["user"]) && !slices.Contains(users, j["uid"]) {
			continue
		}
		n++
		for i, c := range cols {
			if i > 0 {
				b = append(b, '\t')
			}
			b = api.AppendTSV(b, cellText(j, c))
		}
		b = append(b, '\n')
	}
	if n == 0 && len(ids) > 0 && r.URL.Path == "/v1/jobs" {
		writeAnswer(w, &api.Error{Status: 404, Title: "not found", Detail: "there is no job " + ids[0]})
		return
	}
	w.Header().Set("Content-Type", api.TSV+"; charset=utf-8")
	_, _ = w.Write(b)
}

// numeric are the columns that hold 0 where a job says nothing.
var numeric = map[string]bool{
	"array_job": true, "array_limit": true, "uid": true, "gid": true, "priority": true, "nice": true, "submitted": true, "eligible": true,
	"started": true, "ended": true, "begin": true, "deadline": true, "starts_by": true, "time_limit": true, "time_min": true, "attempt": true,
	"exit_status": true, "exit_signal": true, "nodes_max": true, "tasks_per_node": true, "memory": true, "memory_per_cpu": true, "gpus": true,
	"requeue": true, "contiguous": true, "exclusive": true,
}

func cellText(j map[string]string, c string) string {
	if v, ok := j[c]; ok {
		return v
	}
	switch {
	case numeric[c]:
		return "0"
	case c == "het_size", c == "nodes_min", c == "tasks", c == "cpus", c == "cpus_per_task":
		return "1"
	case c == "name":
		return j["id"]
	}
	return ""
}
