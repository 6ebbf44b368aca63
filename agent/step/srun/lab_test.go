package srun

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/env"
	"github.com/coxswain-sched/coxswain/agent/step/node"
	"github.com/coxswain-sched/coxswain/agent/step/steptest"
	"github.com/coxswain-sched/coxswain/internal/exectest"
)

// crew is an allocation with a Node for each of its nodes, in this process.
type crew struct {
	t     *testing.T
	alloc *step.Alloc
	nodes []*node.Node
	spawn *steptest.Spawner
	logs  string
	dir   string // where scripts run

	mu      sync.Mutex
	reports map[reportKey][]node.TaskState
}

// launch starts the nodes of an allocation.
func launch(t *testing.T, a *step.Alloc) *crew {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	c := &crew{t: t, alloc: a, spawn: &steptest.Spawner{}, logs: filepath.Join(base, "ranks"), dir: filepath.Join(base, "work"), reports: make(map[reportKey][]node.TaskState)}
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
		n, err := node.New(node.Config{
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
		c.spawn.Wait()
		_ = os.RemoveAll(sockets)
	})
	return c
}

// reportKey names a task of the allocation.
type reportKey struct{ step, rank int }

func (c *crew) report(s node.TaskState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := reportKey{s.Step, s.Rank}
	c.reports[k] = append(c.reports[k], s)
}

// outcome is what a script did.
type outcome struct {
	out, err string
	code     int
}

// command makes the command of a batch script on the first node. It fails the test if it hangs.
func (c *crew) command(script string) *exec.Cmd {
	c.t.Helper()
	cmd := exectest.Command(c.t, nil, "/bin/bash", "-c", script)
	cmd.Dir = c.dir
	cmd.Env = env.Batch(c.alloc, os.Environ(), 0)
	return cmd
}

// run runs a batch script to its end.
func (c *crew) run(script string) outcome {
	c.t.Helper()
	cmd := c.command(script)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return outcome{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}
