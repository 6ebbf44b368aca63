package podagent_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// bin holds cox-pod, cox-pmix and cox-slurm with its links, as an init container leaves it.
var bin string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "filtered" {
		filtered(os.Args[2:])
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "crew")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		panic(err)
	}
	image := filepath.Join(dir, "image")
	build := exec.Command("go", "build", "-o", image+"/", "../../cmd/cox-pod", "../../cmd/cox-slurm", "../../cmd/cox-pmix")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v\n%s", err, out))
	}
	bin = filepath.Join(dir, "bin")
	if out, err := exec.Command(filepath.Join(image, "cox-pod"), "install", bin).CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v\n%s", err, out))
	}
	return m.Run()
}

// crewOf is an attempt's members on this machine: each a process with a directory of its
// own, at a port of 127.0.0.1.
type crewOf struct {
	t       *testing.T
	dir     string
	plan    *podagent.Plan
	members []*pod
	env     []string // more for every member
	user    *syscall.Credential
	before  []string // a command that runs each member
}

// pod is one member's process.
type pod struct {
	crew  *crewOf
	index int
	cmd   *exec.Cmd
	out   output
	errs  output
	ended chan struct{}
}

// output is what a process wrote, to be read while it writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// ports are free ports of this machine, which nobody else has until the test ends: not one of
// those that the kernel gives to whoever names none (a port that was free a moment ago would be
// another's source or ear by the time a member listens at it), and each held meanwhile against
// other tests by its number in UDP, where no member listens.
//
// Seen to fail with: ports of the kernel's choice that are closed before members begin, beside
// a program that listens at thousands of such ports in turns ("bind: address already in use").
func ports(t *testing.T, n int) []int {
	t.Helper()
	least, most := 32768, 60999
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if _, err := fmt.Sscan(string(text), &least, &most); err != nil {
			t.Fatal(err)
		}
	}
	var out []int
	for _, i := range rand.Perm(1<<16 - 1024) {
		port := 1024 + i
		if len(out) == n {
			break
		}
		if port >= least && port <= most {
			continue
		}
		held, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil { // something else is there
			_ = held.Close()
			continue
		}
		_ = l.Close()
		t.Cleanup(func() { _ = held.Close() })
		out = append(out, port)
	}
	if len(out) < n {
		t.Fatalf("of the ports that are not between %d and %d only %d are free", least, most, len(out))
	}
	return out
}

// planned is an attempt of n members that runs a shell script.
func planned(t *testing.T, n int, script string) *crewOf {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "home")
	if err := os.Mkdir(work, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(work, 0o777); err != nil {
		t.Fatal(err)
	}
	p := &podagent.Plan{
		Ref: engine.Ref{Allocation: 7, Attempt: 1}, Script: []byte("#!/bin/sh\n" + script), Env: []string{"GREETING=hello"},
		Grace: 20 * time.Second, Ready: time.Minute,
		Job: &job.Job{ID: 42, Spec: &job.Spec{
			Name: "sail", Owner: job.Owner{User: "anna", UID: uint32(os.Getuid()), GID: uint32(os.Getgid())},
			Groups: []job.TaskGroup{{}}, Program: job.Program{Kind: job.Batch, ScriptName: "sail.sh"}, WorkDir: work,
		}},
	}
	for i, port := range ports(t, n) {
		name := fmt.Sprintf("cox-ab-7-1-%d", i)
		p.Members = append(p.Members, podagent.Member{
			Name: name, Host: "127.0.0.1", Port: port,
			Node: fleet.Node{Pool: "k8s", Capacity: resource.Vector{CPU: 2 * resource.OneCPU, Memory: resource.GiB}},
		})
		p.Claims = append(p.Claims, fleet.Claim{Node: name, Tasks: 1, Take: resource.Vector{CPU: resource.OneCPU, Memory: resource.GiB / 4}})
	}
	return &crewOf{t: t, dir: dir, plan: p}
}

func (c *crewOf) work(name string) string { return filepath.Join(c.dir, "home", name) }

// secret writes the attempt's files.
func (c *crewOf) secret(name string) string {
	c.t.Helper()
	files, err := podagent.Files(c.plan, time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	dir := filepath.Join(c.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		c.t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
	return dir
}

// start starts all members but those left out.
func (c *crewOf) start(without ...int) *crewOf {
	c.t.Helper()
	secret := c.secret("secret")
	c.members = make([]*pod, len(c.plan.Members))
	for i := range c.plan.Members {
		left := false
		for _, w := range without {
			left = left || w == i
		}
		if !left {
			c.members[i] = c.member(i, secret)
		}
	}
	return c
}

// member starts one.
func (c *crewOf) member(i int, secret string) *pod {
	c.t.Helper()
	dir := filepath.Join(c.dir, "m"+strconv.Itoa(i))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		c.t.Fatal(err)
	}
	p := &pod{crew: c, index: i, ended: make(chan struct{})}
	p.cmd = p.command("run")
	p.cmd.Env = append(p.cmd.Env, podagent.PlanEnv+"="+secret)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errs
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	c.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if c.t.Failed() {
			c.t.Logf("member %d: %s\nstdout:\n%s\nstderr:\n%s\noutcome: %s", i, p.cmd.ProcessState, p.out.String(), p.errs.String(), p.termination())
			if b, err := os.ReadFile(filepath.Join(dir, "run", "s", strconv.Itoa(i), "log")); err == nil {
				c.t.Logf("supervisor %d:\n%s", i, b)
			}
		}
	})
	return p
}

// command is cox-pod in the member's pod.
func (p *pod) command(args ...string) *exec.Cmd {
	c := p.crew
	dir := filepath.Join(c.dir, "m"+strconv.Itoa(p.index))
	cmd := exec.Command(filepath.Join(bin, "cox-pod"), args...)
	if len(c.before) > 0 {
		cmd = exec.Command(c.before[0], append(append(c.before[1:], cmd.Path), args...)...)
	}
	cmd.Env = append(os.Environ(), podagent.DirEnv+"="+dir, podagent.BinEnv+"="+bin, podagent.TerminationEnv+"="+filepath.Join(dir, "termination"),
		podagent.GroupEnv+"="+filepath.Join(dir, "cgroup"), podagent.IndexEnv+"="+strconv.Itoa(p.index))
	cmd.Env = append(cmd.Env, c.env...)
	if c.user != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.user}
	}
	return cmd
}

func (p *pod) termination() string {
	b, _ := os.ReadFile(filepath.Join(p.crew.dir, "m"+strconv.Itoa(p.index), "termination"))
	return string(b)
}

// end waits for a member's end, and returns what it says of it and its exit code.
func (p *pod) end() (*podagent.Outcome, int) {
	p.crew.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.crew.t.Fatalf("member %d has not ended", p.index)
	}
	o, err := podagent.ParseOutcome(p.termination())
	if err != nil {
		p.crew.t.Fatalf("member %d: %v: %q", p.index, err, p.termination())
	}
	return o, p.cmd.ProcessState.ExitCode()
}

// eventually waits for what no event tells.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// TestGangOfThree: a script on the first member runs a step on all, by the job's names.
func TestGangOfThree(t *testing.T) {
	c := planned(t, 3, `echo "$GREETING from $SLURMD_NODENAME of $SLURM_JOB_NODELIST"
srun --label sh -c 'echo $SLURM_PROCID on $SLURMD_NODENAME' | sort
scontrol show hostnames
exit 3`).start()
	o, code := c.members[0].end()
	if o.Cause != engine.Exited || o.Exit != (job.ExitCode{Status: 3}) || code != 3 || o.Started.IsZero() || o.Ended.Before(o.Started) {
		t.Errorf("member 0 exits with %d and %+v", code, o)
	}
	if len(o.Tasks) != 4 || o.Tasks[0].Step != engine.BatchStep || o.Left != 0 {
		t.Errorf("tasks %+v", o.Tasks)
	}
	want := `hello from cox-ab-7-1-0 of cox-ab-7-1-[0-2]
0: 0 on cox-ab-7-1-0
1: 1 on cox-ab-7-1-1
2: 2 on cox-ab-7-1-2
cox-ab-7-1-0
cox-ab-7-1-1
cox-ab-7-1-2
`
	file, err := os.ReadFile(c.work("slurm-42.out"))
	if err != nil || string(file) != want {
		t.Errorf("%v, the file has\n%s", err, file)
	}
	if got := c.members[0].out.String(); got != want {
		t.Errorf("the container's log has\n%s", got)
	}
	for _, p := range c.members[1:] {
		o, code := p.end()
		if o.Cause != engine.Exited || code != 3 || o.Index != p.index || len(o.Tasks) != 1 {
			t.Errorf("member %d exits with %d and %+v", p.index, code, o)
		}
	}
}

// TestStop: SIGTERM to a pod's first process ends the script by its trap, on whichever
// member.
func TestStop(t *testing.T) {
	for _, member := range []int{0, 1} {
		t.Run(strconv.Itoa(member), func(t *testing.T) {
			t.Parallel()
			c := planned(t, 2, `trap 'echo trapped; exit 5' TERM
echo sailing
srun --quiet sh -c 'trap "echo task trapped" TERM; touch '$PWD'/up.$SLURM_PROCID; sleep 300 & wait' & wait; wait`).start()
			eventually(t, "both tasks run", func() bool {
				a, err := os.Stat(c.work("up.0"))
				b, err1 := os.Stat(c.work("up.1"))
				return err == nil && err1 == nil && a != nil && b != nil
			})
			if err := c.members[member].cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			o, code := c.members[0].end()
			if o.Cause != engine.Stopped || code != 5 || o.Exit.Status != 5 || !strings.Contains(c.members[0].out.String(), "trapped") {
				t.Errorf("member 0 exits with %d and %+v", code, o)
			}
			if o, code := c.members[1].end(); o.Cause != engine.Stopped || code != 5 {
				t.Errorf("member 1 exits with %d and %+v", code, o)
			}
		})
	}
}
