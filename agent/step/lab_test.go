package step

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/model/job"
)

// osSpawner spawns with os/exec.
type osSpawner struct{ wait sync.WaitGroup }

func (s *osSpawner) Spawn(c *Cmd) (int, <-chan Exit, error) {
	cmd := &exec.Cmd{Path: c.Path, Args: c.Args, Env: c.Env, SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Files[0], c.Files[1], c.Files[2]
	cmd.ExtraFiles = c.Files[3:]
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	done := make(chan Exit, 1)
	s.wait.Go(func() {
		_ = cmd.Wait()
		ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if ws.Signaled() {
			done <- Exit{Signal: int(ws.Signal())}
			return
		}
		done <- Exit{Status: ws.ExitStatus()}
	})
	return cmd.Process.Pid, done, nil
}

// crew is an allocation with a Node for each of its nodes, in this process.
type crew struct {
	t     *testing.T
	alloc *Alloc
	nodes []*Node
	spawn *osSpawner
	logs  string
	dir   string // where scripts run

	mu      sync.Mutex
	reports map[taskKey][]TaskState
}

// uniform is an allocation of n nodes, v1 to vn, with the same on each.
func uniform(n, tasks, cpus, gpus int) *Alloc {
	a := &Alloc{
		Job: 1, Attempt: 1, Name: "test", Cluster: "coxswain", Partition: "main",
		Owner: job.Owner{User: "nobody", UID: uint32(os.Getuid())}, Started: time.Unix(1700000000, 0),
		Given: map[string]string{}, Groups: []AllocGroup{{}},
	}
	for i := range n {
		a.Nodes = append(a.Nodes, AllocNode{Name: fmt.Sprintf("v%d", i+1), Address: fmt.Sprintf("127.0.10.%d", i+1), CPUs: cpus})
		p := Part{Node: i, Tasks: tasks, CPUs: cpus}
		for d := range gpus {
			p.Devices = append(p.Devices, AllocDevice{Index: d, Kind: "gpu", Type: "h100", Shown: deviceenv.Device{Vendor: deviceenv.Declared, Index: d}})
		}
		a.Groups[0].Parts = append(a.Groups[0].Parts, p)
		a.Groups[0].Tasks += tasks
	}
	return a
}

// asked adds options of the submission.
func asked(a *Alloc, options ...string) *Alloc {
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		a.Given[name] = value
		switch name {
		case "ntasks-per-node":
			fmt.Sscan(value, &a.Groups[0].TasksPerNode)
		case "cpus-per-task":
			fmt.Sscan(value, &a.Groups[0].CPUsPerTask)
		}
	}
	return a
}

// launch starts the nodes of an allocation.
func launch(t *testing.T, a *Alloc) *crew {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	c := &crew{t: t, alloc: a, spawn: &osSpawner{}, logs: filepath.Join(base, "ranks"), dir: filepath.Join(base, "work"), reports: make(map[taskKey][]TaskState)}
	a.Dir, a.Bin, a.WorkDir, a.SubmitDir = base, filepath.Join(base, "bin"), c.dir, c.dir
	for _, d := range []string{c.logs, c.dir, a.Bin} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"srun", "scontrol"} {
		if err := os.Symlink(self, filepath.Join(a.Bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	sockets, err := os.MkdirTemp("", "cox") // short: a socket's path is limited
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.Nodes {
		a.Nodes[i].Socket = filepath.Join(sockets, fmt.Sprint(i))
	}
	if err := a.Save(); err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	for i := range a.Nodes {
		n, err := NewNode(NodeConfig{
			Alloc: a, Node: i, Spawner: c.spawn, TaskInit: []string{self, "task-init"}, Report: c.report, LogDir: c.logs,
			Grace: 300 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", a.Nodes[i].Socket)
		if err != nil {
			t.Fatal(err)
		}
		serving.Go(func() {
			if err := n.Serve(l); err != nil {
				t.Error(err)
			}
		})
		c.nodes = append(c.nodes, n)
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}
		serving.Wait()
		c.spawn.wait.Wait()
		_ = os.RemoveAll(sockets)
	})
	return c
}

func (c *crew) report(s TaskState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := taskKey{s.Step, s.Rank}
	c.reports[k] = append(c.reports[k], s)
}

// outcome is what a script did.
type outcome struct {
	out, err string
	code     int
}

// command makes the command of a batch script on the first node.
func (c *crew) command(script string) *exec.Cmd {
	cmd := exec.Command("/bin/bash", "-c", script)
	cmd.Dir = c.dir
	cmd.Env = Batch(c.alloc, os.Environ(), 0)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// run runs a batch script to its end.
func (c *crew) run(script string) outcome {
	c.t.Helper()
	cmd := c.command(script)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	late := time.AfterFunc(2*time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer late.Stop()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return outcome{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}
