package probe_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/probe"
	"github.com/coxswain-sched/coxswain/model/job"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// target is a server on 127.0.0.1 whose answers a test chooses.
func target(t *testing.T, answer http.HandlerFunc) *probe.Target {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return &probe.Target{
		Serve: &job.Serve{Ports: []job.Port{{Name: "http"}}}, Began: time.Now(),
		Hosts: []string{"127.0.0.1"}, Ports: []int{s.Listener.Addr().(*net.TCPAddr).Port}, //nolint:forcetypeassert // a listener's
	}
}

// watch passes states to a channel until the test ends.
func watch(t *testing.T, target *probe.Target) <-chan probe.State {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	states := make(chan probe.State, 1000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		probe.Watch(ctx, target, func(s probe.State) { states <- s })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return states
}

// await returns the first state that is as wanted.
func await(t *testing.T, states <-chan probe.State, want func(probe.State) bool) probe.State {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case s := <-states:
			if want(s) {
				return s
			}
		case <-late:
			t.Fatal("waited in vain for a state")
		}
	}
}

func TestReadinessCountsInARow(t *testing.T) {
	// Passes must come twice in a row, failures three times.
	answers := []int{200, 503, 200, 399, 503, 404, 200, 500, 500, 400}
	var asked atomic.Int64
	to := target(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" || r.Host == "" {
			t.Errorf("it asks for %s of %q", r.URL, r.Host)
		}
		w.WriteHeader(answers[min(int(asked.Add(1)), len(answers))-1])
	})
	to.Serve.Readiness = &job.Probe{HTTP: "/health", Every: time.Millisecond, Timeout: patience, Passes: 2, Failures: 3}
	states := watch(t, to)
	await(t, states, func(s probe.State) bool { return s.Ready })
	if n := asked.Load(); n < 4 {
		t.Errorf("ready after %d looks", n)
	}
	s := await(t, states, func(s probe.State) bool { return !s.Ready })
	if n := asked.Load(); n < 10 || !strings.Contains(s.Why, "status 400") {
		t.Errorf("after %d looks: %q", n, s.Why)
	}
}

func TestNothingIsLookedAtBeforeTheStart(t *testing.T) {
	var started atomic.Bool
	to := target(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/started" && !started.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path != "/started" && !started.Load():
			t.Error("a probe came before the start")
		}
	})
	to.Serve.Startup = &job.Probe{HTTP: "/started", Every: time.Millisecond, Failures: 1 << 20}
	to.Serve.Readiness = &job.Probe{HTTP: "/ready", Every: time.Millisecond}
	to.Serve.Liveness = &job.Probe{HTTP: "/live", Every: time.Millisecond}
	states := watch(t, to)
	await(t, states, func(s probe.State) bool { return strings.Contains(s.Why, "startup probe has not passed") })
	started.Store(true)
	await(t, states, func(s probe.State) bool { return s.Ready })
}

func TestDead(t *testing.T) {
	fails := func(context.Context, []string) error { return errors.New("it is sick") }
	for name, set := range map[string]func(*job.Serve){
		"startup":  func(s *job.Serve) { s.Startup = &job.Probe{Exec: []string{"x"}, Every: time.Millisecond} },
		"liveness": func(s *job.Serve) { s.Liveness = &job.Probe{Exec: []string{"x"}, Every: time.Millisecond} },
	} {
		t.Run(name, func(t *testing.T) {
			to := target(t, func(http.ResponseWriter, *http.Request) {})
			to.Exec = fails
			set(to.Serve)
			s := await(t, watch(t, to), func(s probe.State) bool { return s.Dead })
			if want := "the " + name + " probe failed: it is sick"; s.Ready || s.Why != want {
				t.Errorf("%+v, want %q", s, want)
			}
		})
	}
}

// TestDefaultIsTheFirstPort has a server that listens at the second address only.
func TestDefaultIsTheFirstPort(t *testing.T) {
	to := target(t, func(http.ResponseWriter, *http.Request) {})
	to.Hosts = []string{"127.3.4.5", "127.0.0.1"}
	if s := await(t, watch(t, to), func(s probe.State) bool { return s.Ready }); s.Host != "127.0.0.1" {
		t.Errorf("%+v", s)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"provisional":  {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", ""},
		"http/2":       {"PRI * HTTP/2.0\r\n\r\n", "not HTTP/1.1"},
		"nothing":      {"", "EOF"},
		"no status":    {"HTTP/1.1 abc\r\n\r\n", "has no status"},
		"endless line": {strings.Repeat("HTTP/1.1 ", 1<<14), "does not end"},
		"endless":      {"HTTP/1.1 100 Continue\r\n" + strings.Repeat("X: y\r\n", 1<<15), "does not end"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer conn.Close()
						r := bufio.NewReader(conn)
						for line := ""; line != "\r\n"; {
							if line, err = r.ReadString('\n'); err != nil {
								return
							}
						}
						fmt.Fprint(conn, c.answer)
					}()
				}
			}()
			to := &probe.Target{
				Serve: &job.Serve{Ports: []job.Port{{Name: "http"}}, Readiness: &job.Probe{HTTP: "/", Timeout: patience}}, Began: time.Now(),
				Hosts: []string{"127.0.0.1"}, Ports: []int{l.Addr().(*net.TCPAddr).Port}, //nolint:forcetypeassert // a listener's
			}
			s := await(t, watch(t, to), func(s probe.State) bool { return s.Ready || s.Why != "" })
			if s.Ready != (c.want == "") || !strings.Contains(s.Why, c.want) {
				t.Errorf("%+v, want %q", s, c.want)
			}
		})
	}
}
