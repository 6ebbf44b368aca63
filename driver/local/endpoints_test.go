package local_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// webMain is a replica: /health passes unless a file "sick" is in its directory, / says its number.
func webMain(dir string) {
	http.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(filepath.Join(dir, "sick")); err == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, os.Getenv("PORT_HTTP"))
	})
	fmt.Println(http.ListenAndServe(":"+os.Getenv("PORT"), nil)) //nolint:gosec // a test's
	os.Exit(1)
}

// planWeb plans a replica, with the directory in which it is made sick.
func planWeb(t *testing.T, e engine.Engine, n int) (l *engine.Launch, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	l = plan(t, e, n, "exec "+self+" web "+dir)
	l.Job.Spec.Serve = &job.Serve{Ports: []job.Port{{Name: "http"}}, Readiness: &job.Probe{HTTP: "/health", Every: 50 * time.Millisecond, Failures: 1}}
	return l, dir
}

// untilServes waits for endpoints of an attempt.
func untilServes(t *testing.T, e *local.Engine, ref engine.Ref, want func(engine.Endpoints) bool) engine.Endpoints {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last engine.Endpoints
	found := errors.New("found")
	err := e.WatchEndpoints(ctx, func(s engine.Endpoints) error {
		if s.Ref != ref {
			return nil
		}
		if s.Version <= last.Version {
			t.Errorf("version %d after %d", s.Version, last.Version)
		}
		if last = s; want(s) {
			return found
		}
		return nil
	})
	if !errors.Is(err, found) {
		t.Fatalf("%v; last endpoints %+v", err, last)
	}
	return last
}

func ready(s engine.Endpoints) bool    { return s.Ready }
func notReady(s engine.Endpoints) bool { return !s.Ready }

// askReplica gets the page of a replica.
func askReplica(s engine.Endpoints) (string, error) {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	r, err := c.Get("http://" + net.JoinHostPort(s.List[0].Host, strconv.Itoa(s.List[0].Number)) + "/")
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return string(b), err
}

func TestEndpointsOverRestartAndDrain(t *testing.T) {
	root := t.TempDir()
	e := newEngine(t, local.Config{Root: root})
	l, dir := planWeb(t, e, 1)
	launch(t, e, l)
	first := untilServes(t, e, l.Ref, ready)
	if got, err := askReplica(first); err != nil || got != strconv.Itoa(first.List[0].Number) || first.List[0].Port != "http" || first.Job != l.Job.ID {
		t.Fatalf("%q, %v from %+v", got, err, first)
	}
	if err := os.WriteFile(filepath.Join(dir, "sick"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s := untilServes(t, e, l.Ref, notReady); !strings.Contains(s.Failed, "GET /health was answered with status 503") {
		t.Errorf("it says %q", s.Failed)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "sick")); err != nil {
		t.Fatal(err)
	}
	e = newEngine(t, local.Config{Root: root, Nodes: e.Room()})
	again := untilServes(t, e, l.Ref, ready)
	if again.Version <= first.Version || !slices.Equal(again.List, first.List) {
		t.Errorf("after a restart %+v, before it %+v", again, first)
	}
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{Grace: patience, Drain: time.Hour, Reason: "it is replaced"}); err != nil {
		t.Fatal(err)
	}
	untilServes(t, e, l.Ref, notReady)
	if _, err := askReplica(first); err != nil {
		t.Errorf("a request while the replica is drained: %v", err)
	}
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{Grace: patience, Reason: "it is replaced"}); err != nil {
		t.Fatal(err)
	}
	if r := until(t, e, l.Ref, gone); r.Cause != engine.Stopped || r.Message != "it is replaced" {
		t.Errorf("%s: %s", r.Cause, r.Message)
	}
}

// TestDrainEnds has nobody say that a replica is drained.
func TestDrainEnds(t *testing.T) {
	e := newEngine(t, local.Config{})
	l, _ := planWeb(t, e, 1)
	launch(t, e, l)
	untilServes(t, e, l.Ref, ready)
	begun := time.Now()
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{Grace: patience, Drain: 100 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if r := until(t, e, l.Ref, gone); r.Cause != engine.Stopped || time.Since(begun) < 100*time.Millisecond {
		t.Errorf("%s after %s", r.Cause, time.Since(begun))
	}
}

func TestLivenessEndsTheProgram(t *testing.T) {
	e := newEngine(t, local.Config{})
	l, dir := planWeb(t, e, 1)
	l.Job.Spec.Serve.Readiness = nil
	l.Job.Spec.Serve.Startup = &job.Probe{HTTP: "/health", Every: 20 * time.Millisecond, Failures: 1000}
	l.Job.Spec.Serve.Liveness = &job.Probe{Exec: []string{"sh", "-c", "test $PORT = $PORT_HTTP && ! test -e " + dir + "/sick"}, Every: 20 * time.Millisecond, Failures: 2, Timeout: patience}
	launch(t, e, l)
	untilServes(t, e, l.Ref, ready)
	if err := os.WriteFile(filepath.Join(dir, "sick"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := until(t, e, l.Ref, gone)
	if r.Cause != engine.Exited || r.Exit.OK() || !strings.Contains(r.Message, "the liveness probe failed: sh ended with") {
		t.Errorf("%s, %s: %s", r.Cause, r.Exit, r.Message)
	}
}

func TestFixedPortInUse(t *testing.T) {
	busy, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	number := busy.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // a listener's
	e := newEngine(t, local.Config{})
	l, _ := planWeb(t, e, 1)
	l.Job.Spec.Serve.Ports[0].Number = number
	r := run(t, e, l)
	want := fmt.Sprintf("port http: port %d of %s is in use by %s (process %d); end that program, choose another number, or leave the number out",
		number, l.Claims[0].Node, comm(t), os.Getpid())
	if r.Cause != engine.Refused || r.Message != want {
		t.Errorf("%s: %s\nwant %s", r.Cause, r.Message, want)
	}
}

func comm(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(read(t, "/proc/self/comm"))
}

// TestGangServesByItsFirstTask has two tasks on two nodes, of which the first listens.
func TestGangServesByItsFirstTask(t *testing.T) {
	e := newEngine(t, local.Config{})
	l, dir := planWeb(t, e, 2)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l.Job.Spec.Serve.Ports = append(l.Job.Spec.Serve.Ports, job.Port{Name: "side-door"})
	l.Script, l.Job.Spec.Program = nil, job.Program{Kind: job.Direct, Args: []string{
		"sh", "-c",
		`echo $PORT $PORT_SIDE_DOOR > ` + dir + `/$SLURM_PROCID; test $SLURM_PROCID = 1 && exec sleep 600; exec ` + self + ` web ` + dir,
	}}
	launch(t, e, l)
	s := untilServes(t, e, l.Ref, ready)
	want := fmt.Sprintf("%d %d\n", s.List[0].Number, s.List[1].Number)
	eventually(t, "the second task has written its ports", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "1"))
		return err == nil && len(b) > 0
	})
	if got := read(t, filepath.Join(dir, "1")); got != want || s.List[1].Port != "side-door" || s.List[0].Number == s.List[1].Number {
		t.Errorf("the second task has %q, the endpoints are %+v", got, s)
	}
	// The supervisor of the other node dies: the replica is not whole any more.
	r := until(t, e, l.Ref, everywhere)
	if err := unix.Kill(r.Nodes[1].PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	untilServes(t, e, l.Ref, notReady)
	if r := until(t, e, l.Ref, gone); r.Cause != engine.NodeLost {
		t.Errorf("%s: %s", r.Cause, r.Message)
	}
}

func TestSuspendedReplicaIsNotReady(t *testing.T) {
	e := newEngine(t, local.Config{})
	l, _ := planWeb(t, e, 1)
	launch(t, e, l)
	untilServes(t, e, l.Ref, ready)
	if err := e.Suspend(t.Context(), l.Ref); err != nil {
		t.Fatal(err)
	}
	untilServes(t, e, l.Ref, notReady)
	if err := e.Resume(t.Context(), l.Ref); err != nil {
		t.Fatal(err)
	}
	untilServes(t, e, l.Ref, ready)
}
