package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/cgroup"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/enginetest"
)

// namings are the ways to name nodes that the machine allows.
func namings(t *testing.T) []local.Naming {
	best, why := local.FindNaming(t.Context(), "")
	if why != "" {
		t.Log(why)
		return []local.Naming{local.NamedByAddr}
	}
	return []local.Naming{best, local.NamedByAddr}
}

func TestConformance(t *testing.T) {
	var ways []local.Config
	for _, naming := range namings(t) {
		for _, limits := range []bool{true, false} {
			if base, _ := cgroup.Find(); limits && !base.Kills() {
				continue // the same as without
			}
			ways = append(ways, local.Config{Naming: naming, NoLimits: !limits})
		}
	}
	// Either two have each way of each once; make race and make unit together have all four.
	switch {
	case len(ways) <= 2 || os.Getenv("COX_LONG") != "":
	case testing.Short():
		ways = []local.Config{ways[0], ways[3]}
	default:
		ways = ways[1:3]
	}
	for _, cfg := range ways {
		t.Run(fmt.Sprintf("names=%s/cgroups=%t", cfg.Naming, !cfg.NoLimits), func(t *testing.T) {
			t.Parallel()
			enginetest.Run(t, harness(cfg))
		})
	}
}

func harness(cfg local.Config) enginetest.Harness {
	var roots sync.Map // the state directories of engines
	rootOf := func(e engine.Engine) string {
		root, _ := roots.Load(e)
		return root.(string)
	}
	open := func(t *testing.T, root string) engine.Engine {
		c := cfg
		c.Root = root
		e := newEngine(t, c)
		roots.Store(e, root)
		return e
	}
	return enginetest.Harness{
		Beside: 4,
		New:    func(t *testing.T) engine.Engine { return open(t, t.TempDir()) },
		Script: script,
		Reopen: func(t *testing.T, e engine.Engine, closed func()) engine.Engine {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			closed()
			return open(t, rootOf(e))
		},
		Break: func(t *testing.T, e engine.Engine, node string) {
			if err := os.WriteFile(filepath.Join(rootOf(e), "break."+node), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			e.(*local.Engine).DropIdle()
		},
		Kill: func(t *testing.T, e engine.Engine, ref engine.Ref, node string) {
			id := identity(t, rootOf(e), ref, node)
			if err := unix.Kill(id.PID, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
		Living: func(t *testing.T, e engine.Engine, ref engine.Ref) int {
			return living(t, e.(*local.Engine), rootOf(e), ref)
		},
	}
}

// lifeOf is what the log of a root says of an attempt.
func lifeOf(t *testing.T, root string, ref engine.Ref) *attempt.Life {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "log")
	if b, err := os.ReadFile(attempt.LogOf(root)); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(copied, b, 0o600); err != nil { // whose engine may be open
		t.Fatal(err)
	}
	log, lives, err := attempt.OpenLog(copied)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if lives[ref] == nil {
		t.Fatalf("the log knows nothing of %s", ref)
	}
	return lives[ref]
}

// seatOf is where an attempt sits on a node, and the number of the node.
func seatOf(t *testing.T, root string, ref engine.Ref, node string) (attempt.Slot, int) {
	t.Helper()
	life := lifeOf(t, root, ref)
	if life.Launch == nil {
		t.Fatalf("%s has ended", ref)
	}
	i := life.Launch.NodeIndex(node)
	return life.Seats[i], i
}

func identity(t *testing.T, root string, ref engine.Ref, node string) attempt.Identity {
	t.Helper()
	s, _ := seatOf(t, root, ref, node)
	return s.Identity
}

// rewrite puts another process into the log of a closed engine.
func rewrite(t *testing.T, root string, ref engine.Ref, node string, id attempt.Identity) {
	t.Helper()
	s, i := seatOf(t, root, ref, node)
	s.Identity = id
	log, _, err := attempt.OpenLog(attempt.LogOf(root))
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(attempt.Entry{Kind: attempt.EntrySeat, Ref: ref, Index: i, Seat: &s}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// living counts the processes that carry the mark of an attempt.
func living(t *testing.T, e *local.Engine, root string, ref engine.Ref) int {
	t.Helper()
	drawn, err := attempt.ReadIdentity(root)
	if err != nil {
		t.Fatal(err)
	}
	marks := map[string]bool{}
	for _, node := range e.Room() {
		marks[(&attempt.Launch{Root: root, Drawn: drawn, Ref: ref}).Mark(node.Name)] = true
	}
	found, err := proc.MarkedBy(func(variable []byte) bool { return marks[string(variable)] })
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
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
