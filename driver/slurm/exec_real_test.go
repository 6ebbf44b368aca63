package slurm_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/portdial"
	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestExec: commands beside the tasks of a job of real Slurm, by its srun, from this machine and over
// SSH: bytes in and out, a terminal with its size and Ctrl-C, the environment, ports of the node,
// steps of the whole allocation, what they used, and nothing left of a command whose caller went away.
func TestExec(t *testing.T) {
	t.Parallel()
	for version, c := range clusters {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c.Nodes, c.More = 2, "JobAcctGatherType=jobacct_gather/linux\nJobAcctGatherFrequency=task=1"
			l := lab.Start(t, c)
			x := &inJob{lab: l, dir: shared(t), ref: refTo(1)}
			here := &command.Here{Env: l.Env, Before: l.Inside}
			x.open(t, here)
			t.Run("streams", x.streams)
			t.Run("terminal", x.terminal)
			t.Run("environment", x.environment)
			t.Run("ports", x.ports)
			t.Run("steps", x.steps)
			t.Run("caller gone", x.callerGone)
			t.Run("used", x.used)
			t.Run("used so far", x.usedSoFar)
			x.close(t)
			if c.Modern {
				return // its sshd takes long, and ssh is the same
			}
			x.open(t, l.SSH(t))
			t.Run("ssh streams", x.streams)
			t.Run("ssh terminal", x.terminal)
			t.Run("ssh caller gone", x.callerGone)
			x.end(t)
		})
	}
}

// inJob is a job of two nodes that runs.
type inJob struct {
	lab *lab.Lab
	dir string
	ref engine.Ref
	e   *slurm.Engine
	r   engine.Report
}

// open opens the engine by a way in; its job is launched by the first one.
func (x *inJob) open(t *testing.T, way command.Runner) {
	t.Helper()
	locks, err := openHere(filepath.Join(x.dir, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	x.e, err = slurm.New(slurm.Config{Root: filepath.Join(x.dir, "state"), Pool: "slurm", Site: command.New(way), Room: locks, Privileged: true, Settle: 3 * time.Second, Usage: 20 * time.Second, LiveUsage: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.e.Close() })
	if x.r.Ref == x.ref {
		return
	}
	err = x.e.Launch(t.Context(), &engine.Launch{
		Ref: x.ref, Job: &job.Job{ID: 1, Attempt: 1, Spec: &job.Spec{
			Name: "beside", WorkDir: x.dir, Program: job.Program{Kind: job.BareAllocation}, TimeLimit: 10 * time.Minute,
			Groups: []job.TaskGroup{{Nodes: job.Range{Min: 2, Max: 2}, Tasks: job.Count{Want: 4}, TasksPerNode: 2}},
		}},
		Env: environ, Claims: []fleet.Claim{{Node: "all", Tasks: 4}},
	})
	if err != nil {
		t.Fatal(err)
	}
	x.r = until(t, x.e, func(r engine.Report) bool { return r.Ref == x.ref && r.Phase == engine.Running })
}

func (x *inJob) close(t *testing.T) {
	t.Helper()
	if err := x.e.Close(); err != nil {
		t.Fatal(err)
	}
}

// end ends the allocation as its salloc does.
func (x *inJob) end(t *testing.T) {
	t.Helper()
	x.run(t, engine.ExecRequest{Command: []string{"cox", "hold-allocation", "end", "0"}})
	if r := ended(t, x.e, x.ref); r.Cause != engine.Exited || !r.Exit.OK() {
		t.Errorf("%s, %s, %q", r.Cause, r.Exit, r.Message)
	}
	if _, err := x.e.Exec(t.Context(), x.ref, engine.ExecRequest{Command: []string{"true"}}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("after its end: %v", err)
	}
}

// environ is what the job was submitted with. The library that it names is none that srun may load.
var environ = []string{"PATH=/usr/bin:/bin", "MINE=it's a\nlong $one", "LD_PRELOAD=/nowhere/a.so", "SLURM_EPILOG=/bin/false", "UID=7"}

func (x *inJob) run(t *testing.T, r engine.ExecRequest) (out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	r.Stdout, r.Stderr = &o, &e
	r.Submitted = func(context.Context) ([]string, error) { return environ, nil }
	code, err := x.e.Exec(t.Context(), x.ref, r)
	if err != nil || !code.OK() {
		t.Fatalf("%q: %s, %v: %s%s", r.Command, code, err, o.String(), e.String())
	}
	return o.String(), e.String()
}

func (x *inJob) streams(t *testing.T) {
	in := make([]byte, 300_000)
	_, _ = rand.Read(in)
	var out, errs bytes.Buffer
	r := engine.ExecRequest{Command: []string{"sh", "-c", "cat; echo err >&2; exit 7"}, Stdin: bytes.NewReader(in), Stdout: &out, Stderr: &errs, Node: x.lab.Nodes[1]}
	code, err := x.e.Exec(t.Context(), x.ref, r)
	if err != nil || code.Status != 7 || !bytes.Equal(out.Bytes(), in) || errs.String() != "err\n" {
		t.Errorf("%s, %v, %d bytes of %d, equal: %v; %q", code, err, out.Len(), len(in), bytes.Equal(out.Bytes(), in), errs.String())
	}
	if out, _ := x.run(t, engine.ExecRequest{Command: []string{"sh", "-c", "echo $SLURMD_NODENAME; pwd"}, Node: x.lab.Nodes[1]}); out != x.lab.Nodes[1]+"\n"+x.dir+"\n" {
		t.Errorf("on the second node: %q", out)
	}
	if _, err := x.e.Exec(t.Context(), x.ref, engine.ExecRequest{Command: []string{"true"}, Node: "none"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("on no node: %v", err)
	}
	rank := 1
	if _, err := x.e.Exec(t.Context(), x.ref, engine.ExecRequest{Command: []string{"true"}, Rank: &rank}); fault.KindOf(err) != fault.Unsupported || !strings.Contains(fault.Remedy(err), x.lab.Nodes[0]) {
		t.Errorf("where a task runs: %v", err)
	}
}

// typist types what it is told to.
type typist struct {
	*io.PipeReader
	to *io.PipeWriter
}

func newTypist() *typist {
	r, w := io.Pipe()
	return &typist{r, w}
}

// screen is what a terminal shows; hears is called with all of it.
type screen struct {
	text  strings.Builder
	hears func(string)
}

func (s *screen) Write(p []byte) (int, error) {
	s.text.Write(p)
	s.hears(s.text.String())
	return len(p), nil
}

func (x *inJob) terminal(t *testing.T) {
	keys, sizes, step := newTypist(), make(chan engine.Window, 1), 0
	answers := []struct {
		at string
		do func()
	}{
		{"ready 24 80", func() { sizes <- engine.Window{Rows: 40, Cols: 111} }},
		{"resized 40 111", func() { _, _ = keys.to.Write([]byte{3}) }},
		{"interrupted", func() { _, _ = keys.to.Write([]byte("word\n")) }},
	}
	s := &screen{hears: func(all string) {
		if step < len(answers) && strings.Contains(all, answers[step].at) {
			step++
			go answers[step-1].do()
		}
	}}
	const script = `trap 'echo interrupted' INT; tty >/dev/null || exit 9; echo ready $(stty size)
until [ "$(stty size)" = "40 111" ]; do sleep 0.1; done; echo resized $(stty size)
while :; do read -r word && break; done; echo "said $word"; exit 5`
	r := engine.ExecRequest{Command: []string{"/bin/sh", "-c", script}, Stdin: keys, Stdout: s, TTY: true, Window: engine.Window{Rows: 24, Cols: 80}, Resize: sizes}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	code, err := x.e.Exec(ctx, x.ref, r)
	if err != nil || code.Status != 5 || !strings.HasSuffix(s.text.String(), "said word\r\n") {
		t.Errorf("%s, %v, %q", code, err, s.text.String())
	}
	if text := s.text.String(); strings.Contains(text, "export ") || strings.Contains(text, "COX_STEP") {
		t.Errorf("the screen shows how the command got there: %q", text)
	}
}

func (x *inJob) environment(t *testing.T) {
	out, errs := x.run(t, engine.ExecRequest{Command: []string{"sh", "-c", `printf '%s|' "$MINE" "$LD_PRELOAD" "$ADDED" "$COX_JOB_ID" "$SLURM_NTASKS" "$SLURM_NNODES" "$SLURM_JOB_ID" "$SLURM_EPILOG" "$COX_STEP_ENV_0"`}, Env: []string{"ADDED=too"}})
	if want := "it's a\nlong $one|/nowhere/a.so|too|1|4|2|" + x.r.Native + "|||"; out != want {
		t.Errorf("%q, want %q; %s", out, want, errs)
	}
}

func (x *inJob) ports(t *testing.T) {
	port := fmt.Sprint(x.lab.Port(0))
	var errs bytes.Buffer
	code, err := x.e.Exec(t.Context(), x.ref, engine.ExecRequest{Command: []string{"cox", portdial.Command, port, portdial.CheckWord}, Stderr: &errs})
	if err != nil || code.Status != portdial.ExitRefused || !strings.Contains(errs.String(), "nothing listens on port "+port) {
		t.Errorf("a port at which nothing listens: %s, %v, %q", code, err, errs.String())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", r.Header.Get("Content-Length"))
		_, _ = io.Copy(w, r.Body)
	}))
	server.Listener = listener
	server.Start()
	defer server.Close()
	x.run(t, engine.ExecRequest{Command: []string{"cox", portdial.Command, port, portdial.CheckWord}})
	body := strings.Repeat("0123456789", 10_000)
	request := "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n" + body
	for _, path := range []string{"/usr/bin:/bin", onlyBash(t)} {
		got, _ := x.run(t, engine.ExecRequest{Command: []string{"cox", portdial.Command, port}, Stdin: io.MultiReader(strings.NewReader(request), newTypist()), Env: []string{"PATH=" + path}})
		if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || strings.Count(got, "0123456789") != 10_000 {
			t.Errorf("with PATH=%s: %d bytes: %.80q", path, len(got), got)
		}
	}
}

func (x *inJob) steps(t *testing.T) {
	out, _ := x.run(t, engine.ExecRequest{Command: []string{"srun", "-l", "sh", "-c", "echo $SLURM_NTASKS $MINE"}})
	for i := range 4 {
		if want := fmt.Sprintf("%d: 4 it's a long $one\n", i); !strings.Contains(out, want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
	out, _ = x.run(t, engine.ExecRequest{Command: []string{"srun", "-n2", "-N2", "--job-name", "mine", "--", "sh", "-c", "echo $SLURMD_NODENAME $SLURM_STEP_ID"}})
	if !strings.Contains(out, x.lab.Nodes[0]+" ") || !strings.Contains(out, x.lab.Nodes[1]+" ") {
		t.Errorf("not on both nodes: %q", out)
	}
}

func (x *inJob) callerGone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &screen{hears: func(string) { cancel() }}
	_, err := x.e.Exec(ctx, x.ref, engine.ExecRequest{Command: []string{"sh", "-c", "echo here; exec sleep 601"}, Stdout: s})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	awaits(t, "the end of the step", func() bool {
		steps := x.lab.Run(t, "squeue", "--steps", "--noheader", "--jobs="+x.r.Native, "--format=%i %j")
		return !strings.Contains(steps, "cox-")
	})
}

// used: what accounting says of a job that ended, by step.
func (x *inJob) used(t *testing.T) {
	ref := refTo(2)
	const script = "#!/bin/sh\nsrun --job-name=busy -N1 -n2 sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'\nsrun --job-name=bad sh -c 'exit 6'\nexit 0\n"
	err := x.e.Launch(t.Context(), &engine.Launch{
		Ref: ref, Job: &job.Job{ID: 2, Attempt: 1, Spec: &job.Spec{
			Name: "used", WorkDir: x.dir, Program: job.Program{Kind: job.Batch, ScriptName: "used.sh"}, TimeLimit: 10 * time.Minute,
			Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 2}}},
		}},
		Script: []byte(script), Env: environ[:1], Claims: []fleet.Claim{{Node: "all", Tasks: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := ended(t, x.e, ref)
	if r.Used == nil || !r.Used.Total.Has(rusage.CPU) || r.Used.Total.CPUTime() < 50*time.Millisecond {
		t.Fatalf("%+v", r.Used)
	}
	busy, batch := r.Used.Step(0), r.Used.Step(engine.BatchStep)
	if busy == nil || busy.Tasks != 2 || busy.Sum.CPUTime() < 50*time.Millisecond || busy.MinCPU == nil || batch == nil || batch.Tasks != 1 {
		t.Errorf("%+v, %+v", busy, batch)
	}
	var names []string
	for _, task := range r.Tasks {
		names = append(names, fmt.Sprintf("%d %s %d", task.Step, task.Name, task.Exit.Status))
	}
	if !slices.Contains(names, "0 busy 0") || !slices.Contains(names, "1 bad 6") {
		t.Errorf("%q", names)
	}
}

// usedSoFar: of a job that runs, Slurm says what its step uses now, once it has measured it.
func (x *inJob) usedSoFar(t *testing.T) {
	ref, stop := refTo(3), filepath.Join(x.dir, "stop")
	script := "#!/bin/sh\nsrun -N1 -n2 sh -c 'while [ ! -e " + stop + " ]; do :; done'\n"
	err := x.e.Launch(t.Context(), &engine.Launch{
		Ref: ref, Job: &job.Job{ID: 3, Attempt: 1, Spec: &job.Spec{
			Name: "busy", WorkDir: x.dir, Program: job.Program{Kind: job.Batch, ScriptName: "busy.sh"}, TimeLimit: 10 * time.Minute,
			Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 2}}},
		}},
		Script: []byte(script), Env: environ[:1], Claims: []fleet.Claim{{Node: "all", Tasks: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, x.e, func(r engine.Report) bool { return r.Ref == ref && r.Phase == engine.Running })
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var used *rusage.Record
	late := time.After(5 * time.Minute)
	for used == nil || used.Total.CPUTime() < time.Second || used.Total.Now == 0 || used.Step(0) == nil {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("measured is %+v", used)
		}
		if used, err = x.e.Usage(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	if used.Step(0).Tasks != 2 || used.Step(0).Running != 2 || used.Total.CPUTime() < used.Step(0).Sum.CPUTime() || used.At.IsZero() {
		t.Errorf("%+v, %v", used, err)
	}
	if err := os.WriteFile(stop, nil, 0o644); err != nil { //nolint:gosec // of a test
		t.Fatal(err)
	}
	ended(t, x.e, ref)
	if _, err := x.e.Usage(t.Context(), ref); fault.KindOf(err) != fault.Conflict {
		t.Errorf("after its end: %v", err)
	}
}

// onlyBash is a folder of commands without Python, on every machine of the lab.
func onlyBash(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"bash", "cat", "hostname"} {
		if err := os.Symlink("/usr/bin/"+name, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
