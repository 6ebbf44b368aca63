package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	servicemodel "github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/service/controller"
	"github.com/coxswain-sched/coxswain/store/secret"
)

// replicaMain is a replica: / says the tag of its revision. One with the tag "bad" ends at once.
func replicaMain(tag string) {
	if tag == "bad" {
		fmt.Println("no model of that name")
		os.Exit(3)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tag) })
	fmt.Println(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil)) //nolint:gosec // a test's
	os.Exit(1)
}

// serviceSite is a server with services, over a state directory that outlives it.
type serviceSite struct {
	t    *testing.T
	dir  string
	s    *server
	stop func()
}

func (x *serviceSite) start() {
	x.t.Helper()
	cfg := config.Default()
	cfg.State.Dir, cfg.Listen.Socket, cfg.Listen.TCP = x.dir, filepath.Join(x.dir, "cox.sock"), "none"
	cfg.Room.Nodes, cfg.Room.ByAddress = 2, true
	if err := MakeState(cfg.State); err != nil {
		x.t.Fatal(err)
	}
	ready := make(chan struct{})
	opt := &Options{Config: cfg, Version: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Ready: func(Info) { close(ready) }}
	s := &server{opt: opt, cfg: &opt.Config}
	ctx, cancel := context.WithCancel(context.Background())
	if err := s.open(ctx); err != nil {
		x.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx) }()
	<-ready
	x.s = s
	x.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			x.t.Error(err)
		}
		if err := s.close(); err != nil {
			x.t.Error(err)
		}
		x.stop = func() {}
	}
}

var me = job.Actor{Name: "me", UID: uint32(os.Getuid())} //nolint:gosec // a user's number

// serviceSpec is a service of this test binary.
func (x *serviceSite) spec(tag string, replicas int, u servicemodel.Update) servicemodel.Spec {
	self, err := os.Executable()
	if err != nil {
		x.t.Fatal(err)
	}
	owner := job.Owner{User: "me", UID: me.UID, GID: uint32(os.Getgid())} //nolint:gosec // a group's number
	return servicemodel.Spec{
		Name: "chat", Owner: owner, Replicas: servicemodel.Bounds{Min: replicas, Max: replicas}, Update: u,
		Job: job.Spec{
			Name: "chat", Owner: owner, WorkDir: x.dir, Pool: poolName,
			Groups:  []job.TaskGroup{{Tasks: job.Count{Want: 1}, CPUsPerTask: 1}},
			Program: job.Program{Kind: job.Direct, Args: []string{self, "replica", tag}},
			Output:  job.Output{Stdout: filepath.Join(x.dir, "out.%j")},
			Serve: &job.Serve{
				Ports:     []job.Port{{Name: "http"}},
				Readiness: &job.Probe{HTTP: "/", Every: 50 * time.Millisecond, Failures: 1},
			},
		},
	}
}

func (x *serviceSite) submit(s servicemodel.Spec) {
	x.t.Helper()
	if _, err := x.s.service.controller.Submit(x.t.Context(), me, s, nil); err != nil {
		x.t.Fatal(err)
	}
}

// until waits until the service is so. watch, if it is given, sees every state on the way.
func (x *serviceSite) until(what string, watch func(controller.Status), want func(controller.Status) bool) controller.Status {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), 20*time.Second)
	defer cancel()
	after, err := x.s.service.controller.Get(ctx, "chat")
	for changes := uint64(0); ; {
		if err != nil {
			x.t.Fatalf("%s: %v; last %+v", what, err, after)
		}
		if watch != nil {
			watch(after)
		}
		if want(after) {
			return after
		}
		if changes, err = x.s.service.controller.Next(ctx, changes); err != nil {
			x.t.Fatalf("%s: %v; %d of %d ready, rollout %+v, replicas %+v, reasons %v", what, err, after.Ready, after.Want, after.Rollout, after.Replicas, after.Reasons)
		}
		after, err = x.s.service.controller.Get(ctx, "chat")
	}
}

func isSettled(revision uint32, replicas int) func(controller.Status) bool {
	return func(s controller.Status) bool {
		return s.Serving == revision && s.Ready == replicas && len(s.Replicas) == replicas && s.Rollout.Phase != servicemodel.Rolling && s.Rollout.Phase != servicemodel.Undoing
	}
}

// ask asks a replica what it is.
func (x *serviceSite) ask(address string) string {
	x.t.Helper()
	answer, err := http.Get("http://" + address + "/")
	if err != nil {
		x.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return string(b)
}

// TestServices: real replicas of a real server are kept alive, updated with a surge and in place,
// undone, scaled, taken over by the next server and stopped.
//
// Seen to fail with: followPools that follows nothing (never ready), and Parts without ended jobs.
func TestServices(t *testing.T) {
	x := &serviceSite{t: t, dir: t.TempDir()}
	x.start()
	defer func() { x.stop() }()
	defer x.logOutput()
	surge := servicemodel.Update{Surge: 1}
	x.submit(x.spec("one", 2, surge))
	s := x.until("two replicas", nil, isSettled(1, 2))
	for i, r := range s.Replicas {
		if got := x.ask(r.Address); got != "one" || r.Index != uint32(i) || r.Node == "" { //nolint:gosec // small
			t.Errorf("replica %+v says %q", r, got)
		}
	}

	// Kept alive: the program is killed, and a new job takes its place.
	first := s.Replicas[0].Job
	x.kill(first)
	s = x.until("a replica begun anew", nil, func(s controller.Status) bool { return isSettled(1, 2)(s) && s.Replicas[0].Job != first })
	if s.Replicas[0].Try != 1 || s.Replicas[1].Try != 0 {
		t.Errorf("replicas %+v", s.Replicas)
	}

	// Rolling: never fewer than two ready, never more than three.
	x.submit(x.spec("two", 2, surge))
	s = x.until("revision 2", func(s controller.Status) {
		if s.Ready < 2 || len(s.Replicas) > 3 {
			t.Errorf("%d ready of %+v", s.Ready, s.Replicas)
		}
	}, isSettled(2, 2))
	if got := x.ask(s.Replicas[1].Address); got != "two" {
		t.Errorf("it says %q", got)
	}

	// In place: never more than two.
	x.submit(x.spec("three", 2, servicemodel.Update{InPlace: true}))
	x.until("revision 3", func(s controller.Status) {
		if s.Ready < 1 || len(s.Replicas) > 2 {
			t.Errorf("%d ready of %+v", s.Ready, s.Replicas)
		}
	}, isSettled(3, 2))

	// A revision that ends at once is undone, and the server is exchanged on the way.
	x.submit(x.spec("bad", 2, surge))
	x.until("a crash", nil, func(s controller.Status) bool {
		return strings.Contains(fmt.Sprint(s.Reasons), "its program ended with exit 3")
	})
	x.stop()
	x.start()
	s = x.until("undone", nil, isSettled(3, 2))
	if s.Rollout.Phase != servicemodel.Undone || !strings.Contains(fmt.Sprint(s.Reasons), "revision 4 failed and was undone: replica 0 ended 3 times in a row: its program ended with exit 3") {
		t.Errorf("rollout %+v, reasons %v", s.Rollout, s.Reasons)
	}

	if err := x.s.service.controller.Scale(t.Context(), me, "chat", 1); err != nil {
		t.Error(err)
	}
	x.until("one replica", nil, isSettled(3, 1))
	if err := x.s.service.controller.Stop(t.Context(), me, "chat"); err != nil {
		t.Error(err)
	}
	for changes := uint64(0); ; {
		if _, err := x.s.service.controller.Get(t.Context(), "chat"); err != nil {
			break
		}
		var err error
		if changes, err = x.s.service.controller.Next(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
	}
	x.s.control.Scan(query.Filter{Live: true}, func(v *state.View) bool { t.Errorf("job %s lives", v.Job.Name()); return true })
}

// logOutput shows what the replicas of a test that failed said.
func (x *serviceSite) logOutput() {
	if !x.t.Failed() {
		return
	}
	files, err := filepath.Glob(filepath.Join(x.dir, "out.*"))
	x.t.Logf("output: %v, %v", files, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		x.t.Logf("%s: %.500s, %v", filepath.Base(f), b, err)
	}
}

// kill ends the program of a job with SIGKILL.
func (x *serviceSite) kill(id job.ID) {
	x.t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		x.t.Fatal(err)
	}
	for _, name := range found {
		b, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(b), "\x00SLURM_JOB_ID="+id.String()+"\x00") || !strings.Contains(string(b), x.dir) {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if err != nil || !strings.Contains(string(line), "\x00replica\x00") {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(name, "/proc/%d/environ", &pid); err != nil {
			x.t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			x.t.Fatal(err)
		}
		return
	}
	x.t.Fatalf("no process of job %s", id)
}

// TestEmptyToken: a secret that is empty but for its line end is no token, and is refused in words.
//
// Seen to fail with: the hash of nothing.
func TestEmptyToken(t *testing.T) {
	kept := secret.NewStore(filepath.Join(t.TempDir(), "secrets"))
	for name, value := range map[string]string{"key": "s3cret\n", "empty": "\r\n"} {
		if err := kept.Put(2001, name, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	hash := hashTokens(kept)
	if got, err := hash(job.Owner{UID: 2001}, []string{"key"}); err != nil || len(got) != 1 || got[0] != "1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := hash(job.Owner{UID: 2001}, []string{"key", "empty"}); fault.KindOf(err) != fault.Invalid || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}
