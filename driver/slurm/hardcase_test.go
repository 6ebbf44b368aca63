package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestNodesThatGo: on real clusters, a node loses its power, and a node is drained while a
// job is on it. Nodes' epilogs wait for a file.
//
// Seen to fail with: a drained node that is up; an attempt that takes the lock of the one
// before for its own.
func TestNodesThatGo(t *testing.T) {
	t.Parallel()
	for version, c := range clusters {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			epilog := filepath.Join(dir, "epilog")
			if err := os.WriteFile(epilog, fmt.Appendf(nil, "#!/bin/sh\nwhile [ -e %s/clean ]; do sleep 0.1; done\n", dir), 0o755); err != nil {
				t.Fatal(err)
			}
			c.Nodes, c.More = 3, "Epilog="+epilog
			s := &scene{lab: lab.Start(t, c), modern: c.Modern}
			t.Run("power", func(t *testing.T) { t.Parallel(); s.power(t) })
			t.Run("drain", func(t *testing.T) {
				t.Parallel()
				for i, name := range []string{"placed", "delegated"} {
					t.Run(name, func(t *testing.T) { s.drain(t, s.lab.Nodes[i], i == 1, filepath.Join(dir, "clean")) })
				}
			})
		})
	}
}

// power: a node loses its power with a job on it, and boots. slurmctld begins the job again on
// that node: the next attempt runs there, once, whatever the first one left.
func (s *scene) power(t *testing.T) {
	node := s.lab.Nodes[2]
	b := newBench(s.commands, openHere)
	b.delegated = true
	dir, root := t.TempDir(), t.TempDir()
	e := b.open(t, root)
	first, second := another(dir, 1, 1), another(dir, 2, 2)
	for _, l := range []*engine.Launch{first, second} {
		l.Job.Spec.Groups[0].NodeList = []string{node}
	}
	if err := e.Launch(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	runs(t, e, first.Ref)
	s.lab.PowerOff(t, node)
	if n := living(t, root, first.Ref); n != 0 {
		t.Fatalf("%d processes live without power", n)
	}
	left := func() (names []string) {
		found, _ := filepath.Glob(filepath.Join(root, "locks", first.Ref.String()+"-*.0*"))
		spool, _ := filepath.Glob(filepath.Join(s.lab.Dir, "spool", node, "job*"))
		for _, name := range append(found, spool...) {
			names = append(names, filepath.Base(name))
		}
		return names
	}
	if n := len(left()); n < 3 { // the lock, the hint that it began, Slurm's own
		t.Errorf("left: %q", left())
	}
	for boots := 1; ; boots++ { // slurmctld asks what runs there when it pleases
		s.lab.PowerOn(t, node)
		again := false
		for end := time.Now().Add(6 * time.Second); !again && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			r, err := e.Inspect(t.Context(), first.Ref)
			again = err == nil && r.Gone
		}
		if again {
			break
		}
		if boots == 30 {
			t.Fatal("slurmctld does not see that the job is gone")
		}
		s.lab.PowerOff(t, node)
	}
	r, err := e.Inspect(t.Context(), first.Ref)
	if err != nil || r.Cause != engine.NodeLost || r.Uncertain {
		t.Errorf("%+v, %v", r, err)
	}
	id := r.Native
	if err := e.Launch(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	until(t, e, func(r engine.Report) bool { return r.Ref == second.Ref && strings.HasPrefix(r.Message, "BeginTime") })
	s.lab.Run(t, "scontrol", "update", "JobId="+id, "StartTime=now") // Slurm would wait two minutes
	r = until(t, e, func(r engine.Report) bool { return r.Gone && r.Ref == second.Ref })
	ran, _ := os.ReadFile(filepath.Join(dir, "ran"))
	if want := id + " 0\n" + id + " 1\n"; r.Cause != engine.Exited || r.Exit.Status != 5 || string(ran) != want || len(r.Nodes) != 1 || r.Nodes[0].Node != node {
		t.Errorf("%+v\nran %q, want %q", r, ran, want)
	}
}

// drain: an administrator drains a node that a job has, wholly (ALLOCATED) or in part (MIXED).
// The job goes on; the node is shown as draining with the reason, while it runs, while it is
// cleaned up (COMPLETING) and when it is empty, and nothing begins there, in both kinds of
// pools, until the administrator takes it back.
func (s *scene) drain(t *testing.T, node string, delegated bool, unclean string) {
	b := newBench(s.commands, openHere)
	b.delegated = delegated
	word := "mixed"
	if !delegated {
		b.options = []string{"--exclusive"}
	}
	if !delegated || !s.modern { // 22.05 calls a node that drains so, whatever is on it
		word = "allocated"
	}
	dir := t.TempDir()
	e := b.open(t, t.TempDir())
	launch := func(i int, script string) engine.Ref {
		l := another(dir, uint64(i), 1)
		l.Job.ID, l.Job.Spec.Requeue, l.Script = job.ID(i), false, fmt.Appendf(nil, "#!/bin/sh\n"+script, dir)
		l.Job.Spec.Groups[0].NodeList, l.Claims[0].Node = []string{node}, node
		if delegated {
			l.Claims[0].Node = "slurm"
		}
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		return l.Ref
	}
	has := launch(1, "until [ -e %[1]s/end ]; do sleep 0.1; done\nexit 3\n")
	runs(t, e, has)
	if err := os.WriteFile(unclean, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(unclean) }) // before the driver waits for ends
	s.lab.Run(t, "scontrol", "update", "NodeName="+node, "State=DRAIN", "Reason=disk is slow")
	s.drains(t, e, node, word, "drain")
	wants := launch(2, "echo >%[1]s/began\nexit 3\n")
	waits(t, e, wants, "Resources", "Priority", "ReqNodeNotAvail", "Nodes_required", "DOWN", "DRAIN")
	if r, err := e.Inspect(t.Context(), has); err != nil || r.Phase != engine.Running || r.Uncertain {
		t.Errorf("%+v, %v", r, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "end"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.drains(t, e, node, "completing", "drain")
	polls := e.Polls().Count
	awaits(t, "three polls", func() bool { return e.Polls().Count >= polls+3 })
	for _, ref := range []engine.Ref{has, wants} {
		if r, err := e.Inspect(t.Context(), ref); err != nil || r.Gone {
			t.Errorf("while the node is not clean: %+v, %v", r, err)
		}
	}
	if err := os.Remove(unclean); err != nil {
		t.Fatal(err)
	}
	if r := until(t, e, func(r engine.Report) bool { return r.Ref == has && r.Gone }); r.Cause != engine.Exited || r.Exit.Status != 3 {
		t.Errorf("%+v", r)
	}
	s.drains(t, e, node, "idle", "drain")
	polls = e.Polls().Count
	awaits(t, "three polls", func() bool { return e.Polls().Count >= polls+3 })
	if r, err := e.Inspect(t.Context(), wants); err != nil || r.Phase != engine.Accepted {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "began")); err == nil {
		t.Error("it began on the drained node")
	}
	s.drains(t, e, node, "idle", "drain")
	s.lab.Run(t, "scontrol", "update", "NodeName="+node, "State=RESUME")
	if r := until(t, e, func(r engine.Report) bool { return r.Ref == wants && r.Gone }); r.Cause != engine.Exited || r.Exit.Status != 3 {
		t.Errorf("%+v", r)
	}
	awaits(t, "that the node is up again", func() bool { return s.node(t, e, node).State == fleet.Up })
}

// node is a node as the engine tells it.
func (s *scene) node(t *testing.T, e *slurm.Engine, name string) fleet.Node {
	t.Helper()
	var all []fleet.Node
	var err error
	awaits(t, "the nodes", func() bool { // a single call of Slurm's can fail, on a machine under load
		if all, err = e.Nodes(t.Context()); err != nil {
			t.Log(err)
		}
		return err == nil
	})
	i := slices.IndexFunc(all, func(n fleet.Node) bool { return n.Name == name })
	if i < 0 {
		t.Fatalf("there is no %s", name)
	}
	return all[i]
}

// drains waits until a node is drained in Slurm's own words too, and wants it to be shown so
// all the time.
func (s *scene) drains(t *testing.T, e *slurm.Engine, node string, words ...string) {
	t.Helper()
	var last string
	defer func() {
		if t.Failed() {
			t.Logf("%s, in the words %q: %s", node, words, last)
		}
	}()
	awaits(t, "these words", func() bool {
		n := s.node(t, e, node)
		last = n.Why
		if n.State != fleet.Draining || !strings.Contains(n.Why, "disk is slow") {
			t.Fatalf("%s: %s, %q", node, n.State, n.Why)
		}
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(strings.ToLower(n.Why), w) })
	})
}
