package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// TestMain lets the test binary stand in for cox-top.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "cox-top" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// server is as much of a server as cox-top asks.
type server struct {
	*httptest.Server
	mu        sync.Mutex
	jobs      []printer.QueueRow
	events    chan api.Event
	cancelled chan string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{jobs: seen().jobs, events: make(chan api.Event, 16), cancelled: make(chan string, 1)}
	mux := http.NewServeMux()
	answer := func(pattern string, v func(r *http.Request) any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v(r)) // a client that has gone
		})
	}
	answer("GET /v1", func(*http.Request) any { return api.ServerInfo{Name: "main", Host: "login1"} })
	answer("GET /v1/nodes", func(*http.Request) any { return api.Nodes{Nodes: withUUIDs(seen().nodes)} })
	answer("GET /v1/pools", func(*http.Request) any { return api.Pools{Pools: seen().pools} })
	mux.HandleFunc("GET /v1/jobs", s.list)
	mux.HandleFunc("GET /v1/watch", s.watch)
	answer("POST /v1/jobs/change", func(r *http.Request) any {
		var ch api.Change
		if err := json.NewDecoder(r.Body).Decode(&ch); err != nil {
			t.Error(err)
		}
		s.cancelled <- strings.Join(ch.Select.IDs, ",")
		return api.Changed{Matched: 1, Changed: 1, Names: ch.Select.IDs}
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s
}

// list answers in the columns that are asked for.
func (s *server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.jobs {
		j := &s.jobs[i]
		have := map[string]string{
			"name": j.Name, "job_name": j.JobName, "user": j.User, "state": j.State, "reason_text": j.ReasonText,
			"node_list": j.NodeList, "priority": fmt.Sprint(j.Priority), "nodes_min": fmt.Sprint(j.Nodes), "gpus": fmt.Sprint(j.GPUs),
		}
		var b []byte
		for k, col := range strings.Split(r.URL.Query().Get("columns"), ",") {
			if k > 0 {
				b = append(b, '\t')
			}
			b = api.AppendTSV(b, have[col])
		}
		_, _ = w.Write(append(b, '\n')) // a client that has gone
	}
}

func (s *server) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-s.events:
			b, _ := json.Marshal(e) // of our own type
			fmt.Fprintf(w, "id: %d\nevent: change\ndata: %s\n\n", e.Seq, b)
			_ = flush.Flush()
		}
	}
}

// screen is a cox-top on a terminal, with all that it wrote.
type screen struct {
	t    *testing.T
	tty  *os.File
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func start(t *testing.T, url string, args ...string) (*screen, *exec.Cmd) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "cox-top")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "COX_SERVER="+url, "TERM=xterm-256color")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, tty: tty, more: make(chan struct{}, 1)}
	go s.read()
	t.Cleanup(func() { tty.Close(); _ = cmd.Process.Kill() })
	return s, cmd
}

func (s *screen) read() {
	buf := make([]byte, 4096)
	for {
		n, err := s.tty.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// until waits until a text was written after all that was waited for before.
func (s *screen) until(text string) {
	s.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		s.mu.Lock()
		at := bytes.Index(s.text.Bytes(), []byte(text))
		if at >= 0 {
			s.text.Next(at + len(text))
		}
		rest := s.text.String()
		s.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-s.more:
		case <-deadline:
			s.t.Fatalf("%q was never written:\n%q", text, rest)
		}
	}
}

func (s *screen) press(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func TestOnATerminal(t *testing.T) {
	srv := newServer(t)
	s, cmd := start(t, srv.URL, "--no-color")
	s.until("nodes 11 up 1 draining")
	s.press("3")
	s.until("9_[1-4]")
	srv.mu.Lock()
	srv.jobs = append(srv.jobs, printer.QueueRow{Name: "11", JobName: "newcomer", User: "cleo", State: "PENDING", Priority: 99})
	srv.mu.Unlock()
	srv.events <- api.Event{Seq: 1, Kind: "submitted"}
	s.until("newcomer")
	s.press("gc")
	s.until("cancel 11 newcomer of cleo")
	s.press("y")
	select {
	case got := <-srv.cancelled:
		if got != "11" {
			t.Errorf("cancelled %q", got)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing was cancelled")
	}
	s.press("q")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestUseOfGPUsOfThisMachine: by UUID, as nvidia-smi has it; others are unknown.
func TestUseOfGPUsOfThisMachine(t *testing.T) {
	srv := newServer(t)
	bin := t.TempDir()
	script := "#!/bin/sh\n[ \"$1\" = --query-gpu=uuid,utilization.gpu,memory.used ] || exit 1\nfor i in 0 1 2 3; do echo \"GPU-v1-$i, $((i * 20 + 7)), 1024\"; done\necho 'GPU-v2-0, [N/A], 0'\n"
	if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(script), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	s, _ := start(t, srv.URL, "--no-color")
	s.until("37%")
	s.press("2")
	s.until("37% of 4")
	s.press("1\r")
	s.until("gpu 0: 7% busy, 1 GiB of memory used")
}

func TestWithoutAServerTheTerminalIsLeftAlone(t *testing.T) {
	s, cmd := start(t, "unix:///nowhere/cox.sock")
	s.until("no server answers")
	s.until("cox up")
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 75 {
		t.Errorf("%v, exit %d", err, cmd.ProcessState.ExitCode())
	}
}

func TestWithoutATerminalItIsSaid(t *testing.T) {
	srv := newServer(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "cox-top")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name)
	cmd.Env = append(os.Environ(), "COX_SERVER="+srv.URL)
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 69 || !strings.Contains(string(out), "needs a terminal") {
		t.Errorf("%v\n%s", err, out)
	}
}
