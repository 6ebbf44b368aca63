package slurm_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/rest"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/enginetest"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// bench opens engines on one way into a cluster and remembers where they live.
type bench struct {
	site   func() site.Site
	room   func(dir string) (lockdir.Directory, error)
	roots  map[engine.Engine]string
	closed map[engine.Engine]bool

	files     func(context.Context, job.Owner, string) (io.ReadCloser, error)
	delegated bool // Slurm chooses the nodes
	usual     bool // no shorter pauses than usual
	options   []string
}

// openHere has the locks on this machine.
func openHere(dir string) (lockdir.Directory, error) { return lockdir.Open(dir) }

func newBench(way func() site.Site, locks func(string) (lockdir.Directory, error)) *bench {
	return &bench{site: way, room: locks, roots: map[engine.Engine]string{}, closed: map[engine.Engine]bool{}}
}

func (b *bench) open(t *testing.T, root string) *slurm.Engine {
	t.Helper()
	locks, err := b.room(filepath.Join(root, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	c := slurm.Config{Root: filepath.Join(root, "state"), Pool: "slurm", Site: b.site(), Room: locks, Placed: !b.delegated, Files: b.files, Privileged: true, Options: b.options}
	if !b.usual {
		c.Settle, c.Tidy = 3*time.Second, 2*time.Second
	}
	e, err := slurm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	b.roots[e] = root
	t.Cleanup(func() { b.clear(t, e) })
	return e
}

// clear ends what an engine has, and closes it.
func (b *bench) clear(t *testing.T, e *slurm.Engine) {
	if b.closed[engine.Engine(e)] { // another has taken its place
		return
	}
	ctx := context.Background()
	if all, err := e.List(ctx); err == nil {
		for _, r := range all {
			_ = e.Stop(ctx, r.Ref, engine.Stop{})
		}
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		all, _ := e.List(ctx)
		left := 0
		for _, r := range all {
			if !r.Gone {
				left++
			}
		}
		if left == 0 {
			break
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// clusters are the versions of Slurm that the driver is tested with.
var clusters = map[string]lab.Config{"22.05": {}, "24.11": {Modern: true}}

// TestConformance: the contract of engines, by the commands here and over SSH, and by
// slurmrestd.
func TestConformance(t *testing.T) {
	t.Parallel()
	for version, c := range clusters {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			l := lab.Start(t, c)
			t.Run("ways", func(t *testing.T) { conformByAllWays(t, c, l) })
			t.Run("fences", func(t *testing.T) { // they close nodes: nobody else has the cluster then
				if c.Modern {
					conformFences(t, l, newBench(func() site.Site { return byREST(t, l, nil) }, openHere))
				} else {
					conformFences(t, l, newBench(func() site.Site { return l.Command() }, openHere))
				}
			})
		})
	}
}

func conformByAllWays(t *testing.T, c lab.Config, l *lab.Lab) {
	t.Run("commands", func(t *testing.T) {
		t.Parallel()
		conform(t, newBench(func() site.Site { return l.Command() }, openHere))
	})
	t.Run("rest", func(t *testing.T) {
		t.Parallel()
		conform(t, newBench(func() site.Site { return byREST(t, l, l.Command()) }, openHere))
	})
	t.Run("delegated", func(t *testing.T) {
		t.Parallel()
		way := func() site.Site { return l.Command() }
		if c.Modern {
			way = func() site.Site { return byREST(t, l, l.Command()) }
		}
		b, waiting := newBench(way, openHere), newBench(way, openHere)
		b.delegated, waiting.delegated, waiting.options = true, true, []string{"--begin=now+1hour"}
		h := b.harness()
		h.Topics, h.Delegated, h.WaitingDelegated = []string{"Withdraw", "Avoid"}, true, true
		h.Waiting = func(t *testing.T) engine.Engine { return waiting.open(t, shared(t)) }
		h.Living = nil // of two benches
		enginetest.Run(t, h)
	})
	t.Run("ssh", func(t *testing.T) {
		if c.Modern && os.Getenv("COX_LONG") == "" {
			t.Skip("the commands are those of the way above, the connection is that of 22.05: with COX_LONG=1")
		}
		t.Parallel()
		login := l.SSH(t)
		t.Cleanup(func() { _ = login.Close() })
		locks := func(dir string) (lockdir.Directory, error) { return command.OpenRoom(t.Context(), login, dir) }
		b := newBench(func() site.Site { return command.New(l.SSH(t)) }, locks)
		b.files = func(ctx context.Context, _ job.Owner, name string) (io.ReadCloser, error) {
			return command.OpenFile(ctx, login, name)
		}
		conform(t, b)
	})
}

// byREST reaches a cluster by slurmrestd, whose tokens are made for it; commands do what it
// cannot, if there are any.
func byREST(t *testing.T, l *lab.Lab, commands site.Site) site.Site {
	t.Helper()
	s, err := rest.New(rest.Config{URL: l.REST(), Tokens: &rest.Key{Path: filepath.Join(l.Dir, "jwt.key")}, Commands: commands})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func conform(t *testing.T, b *bench) { enginetest.Run(t, b.harness()) }

func (b *bench) harness() enginetest.Harness {
	return enginetest.Harness{
		Shared: true,
		New:    func(t *testing.T) engine.Engine { return slurm.Suspending{Engine: b.open(t, shared(t))} },
		Script: script,
		Reopen: func(t *testing.T, e engine.Engine, closed func()) engine.Engine {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			of := bare(e)
			b.closed[of] = true
			closed()
			return slurm.Suspending{Engine: b.open(t, b.roots[of])}
		},
		Living: func(t *testing.T, e engine.Engine, ref engine.Ref) int { return living(t, b.roots[bare(e)], ref) },
	}
}

// bare is the engine without the ability to suspend.
func bare(e engine.Engine) engine.Engine {
	if s, ok := e.(slurm.Suspending); ok {
		return s.Engine
	}
	return e
}

// shared is a directory that jobs can reach, and that is removed.
func shared(t *testing.T) string {
	t.Helper()
	return t.TempDir()
}

// living counts the processes of an attempt: each has in its environment where its lock is.
func living(t *testing.T, root string, ref engine.Ref) int {
	t.Helper()
	return processes(t, root+"/locks", ref)
}

// processes counts those whose environment has a directory of locks that begins so, and an
// attempt.
func processes(t *testing.T, dir string, ref engine.Ref) int {
	t.Helper()
	mark := regexp.MustCompile("(^|\x00)COX_ATTEMPT=" + regexp.QuoteMeta(dir) + "[^/:\x00]*:" + regexp.QuoteMeta(ref.String()) + "\x00")
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range found {
		if b, err := os.ReadFile(name); err == nil && mark.Match(b) {
			n++
		}
	}
	return n
}

// script behaves like a program, in shell.
func script(p enginetest.Program) []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("#!/bin/sh")
	if p.Resists {
		line("trap '' TERM") // children inherit it
	}
	if p.Leaves {
		line("setsid sh -c 'while :; do sleep 600; done' &")
	}
	line("echo ready")
	switch {
	case p.Run == enginetest.Forever && p.Resists:
		line("while :; do sleep 600; done")
	case p.Run == enginetest.Forever:
		line("exec sleep 600")
	case p.Run > 0:
		line("sleep %g", p.Run.Seconds())
	}
	if p.Signal != 0 {
		line("kill -%d $$", p.Signal)
	}
	line("exit %d", p.Exit)
	return []byte(b.String())
}
