package slurm_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/nodefence"
	"github.com/coxswain-sched/coxswain/driver/slurm/rest"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/enginetest"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// conformFences is the part of the contract that closes nodes, on a real cluster, with jobs of others and an
// administrator beside the driver.
//
// Seen to fail with: a fence that is the field of Extra alone; one that is the drain alone; an Unfence that
// undrains whatever the reason is; an Empty that does not count jobs of others.
func conformFences(t *testing.T, l *lab.Lab, b *bench) {
	h := b.harness()
	h.Shared, h.Topics = false, []string{"NodeFence"}
	h.Outside = enginetest.Outside{
		Start: func(t *testing.T, _ engine.Engine, node string) (runs bool, end func()) {
			id, _, _ := strings.Cut(strings.TrimSpace(l.Run(t, "sbatch", "--parsable", "--nodelist="+node, "--output=/dev/null", "--mem=1M", "--wrap=exec sleep 600")), ";")
			for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
				state, reason, _ := strings.Cut(strings.TrimSpace(l.Run(t, "squeue", "--noheader", "--jobs="+id, "--format=%T|%r")), "|")
				if runs = state == "RUNNING"; runs || state == "PENDING" && strings.Contains(reason, "Node") {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("job %s is %s for %s", id, state, reason)
				}
			}
			return runs, func() { l.Run(t, "scancel", id) }
		},
		Drain: func(t *testing.T, _ engine.Engine, node, why string) {
			if why == "" {
				_, _ = l.Try(context.Background(), "scontrol", "update", "NodeName="+node, "State=UNDRAIN") // which may have been done
				return
			}
			l.Run(t, "scontrol", "update", "NodeName="+node, "State=DRAIN", "Reason="+why)
		},
		Silence: func(t *testing.T, _ engine.Engine, node string) func() {
			l.Kill(t, "slurmd."+node)
			// What slurmd sent before it was killed may still be taken for an answer, some time later too.
			deadline := time.Now().Add(2 * time.Minute)
			for silent := 0; silent < 4; time.Sleep(time.Second) {
				if silent++; !strings.Contains(l.Run(t, "sinfo", "--noheader", "--Node", "--nodes="+node, "--format=%t"), "*") {
					silent = 0
					l.Run(t, "scontrol", "update", "NodeName="+node, "State=NORESP")
				}
				if time.Now().After(deadline) {
					t.Fatalf("node %s is never said to be silent for long", node)
				}
			}
			return func() { l.Begin(t, "slurmd."+node) }
		},
	}
	enginetest.Run(t, h)
	t.Run("Overruled", func(t *testing.T) { testOverruled(t, l, b) })
	t.Run("NoOperator", func(t *testing.T) { testNoOperator(t, l) })
}

// testOverruled: a fenced node that somebody undrains is not fenced, and the pool says so; a fence of the same
// hand-over closes it again.
func testOverruled(t *testing.T, l *lab.Lab, b *bench) {
	e, node := b.open(t, shared(t)), l.Nodes[0]
	f := engine.NodeFence{Epoch: uint64(time.Now().UnixMilli()), Reason: "test"}
	if err := e.Fence(t.Context(), node, f); err != nil {
		t.Fatal(err)
	}
	l.Run(t, "scontrol", "update", "NodeName="+node, "State=RESUME")
	if c, err := e.Empty(t.Context(), node); err != nil || c.Fence != nil {
		t.Errorf("undrained by hand: %+v, %v", c, err)
	}
	nodes, err := e.Nodes(t.Context())
	if i := slices.IndexFunc(nodes, func(n fleet.Node) bool { return n.Name == node }); err != nil || nodes[i].Fence != 0 {
		t.Errorf("undrained by hand: %+v, %v", nodes, err)
	}
	if err := e.Refuse(engine.Ref{Allocation: 1, Attempt: 1}, []fleet.Claim{{Node: node}}); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("a launch there: %v", err)
	}
	notes := func() string {
		info, err := e.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(info.Notes, "\n")
	}
	if text := notes(); !strings.Contains(text, node+" were undrained by hand while fenced") {
		t.Errorf("the pool's notes: %s", text)
	}
	if err := e.Fence(t.Context(), node, f); err != nil {
		t.Error(err)
	}
	if c, err := e.Empty(t.Context(), node); err != nil || c.Fence == nil {
		t.Errorf("fenced again: %+v, %v", c, err)
	}
	if err := e.Unfence(t.Context(), node, f); err != nil {
		t.Error(err)
	}
	if _, err := e.Nodes(t.Context()); err != nil || strings.Contains(notes(), "undrained") {
		t.Errorf("without the fence: %v, %s", err, notes())
	}
}

// testNoOperator: who is no operator of Slurm fences no node, and the error says what to do.
func testNoOperator(t *testing.T, l *lab.Lab) {
	s := l.Command().As(anna.User)
	if len(l.Inside) > 0 { // where nobody but root runs commands
		s = asREST(t, l, anna.User)
	}
	f, err := nodefence.New(s, filepath.Join(t.TempDir(), "fences"), func(string) bool { return false }, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Fence(t.Context(), l.Nodes[0], engine.NodeFence{Epoch: 1, Reason: "test"})
	if fault.KindOf(err) != fault.Permission || !strings.Contains(fault.Remedy(err), "adminlevel=Operator") {
		t.Errorf("%v (%s); %s", err, fault.KindOf(err), fault.Remedy(err))
	}
}

// asREST reaches the cluster by slurmrestd as a user.
func asREST(t *testing.T, l *lab.Lab, user string) site.Site {
	t.Helper()
	s, err := rest.New(rest.Config{URL: l.REST(), User: user, Tokens: &rest.Key{Path: filepath.Join(l.Dir, "jwt.key")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
