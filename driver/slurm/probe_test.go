package slurm_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// TestAProbe: Slurm loses a job that had begun. Its node is asked, and as long as a process of
// it lives there it is uncertain; when none does it is over.
//
// Seen to fail with: any answer taken for an end; a probe that looks for another name.
func TestAProbe(t *testing.T) {
	s := &stage{}
	e, ref, dir := play(t, s)
	s.act(t, time.Now(), "n1")
	s.with(func() { s.jobs = nil })
	probes := func() (n int) { s.with(func() { n = s.submitted - 1 }); return n }
	ask := func() { // as slurmd would
		n := probes()
		awaits(t, "a probe", func() bool { return probes() > n })
		var script string
		s.with(func() { script = s.script })
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%v: %s\n%s", err, out, script)
		}
	}
	lives := exec.Command("sleep", "600")
	lives.Env = []string{"COX_ATTEMPT=" + dir + ":" + ref.String()}
	if err := lives.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() { _ = lives.Process.Kill(); _ = lives.Wait() }
	t.Cleanup(end)
	until(t, e, func(r engine.Report) bool { return r.Uncertain })
	ask()
	if r, err := e.Inspect(t.Context(), ref); err != nil || r.Gone {
		t.Fatalf("%+v, %v", r, err)
	}
	end()
	ask()
	r := until(t, e, func(r engine.Report) bool { return r.Gone })
	if r.Cause != engine.NodeLost || r.Exit.OK() || !strings.Contains(r.Message, "nothing of it lives") {
		t.Errorf("%+v", r)
	}
}

// TestAProbeOfAHeterogeneousJob: the lock has the nodes of the first component alone. Those
// that were named are asked all, or where Slurm chose, all that there are.
//
// Seen to fail with: no probe; the nodes of the lock alone.
func TestAProbeOfAHeterogeneousJob(t *testing.T) {
	for name, asked := range map[string][]string{"placed": {"n1", "n3"}, "delegated": {"n1", "n2", "n3"}} {
		t.Run(name, func(t *testing.T) {
			s := &stage{}
			for _, n := range []string{"n1", "n2", "n3"} {
				s.nodes = append(s.nodes, site.Node{Name: n, CPUs: 8, Available: true})
			}
			e, root := stageWith(t, s, func(c *slurm.Config) { c.Placed = name == "placed" })
			l := another(root, 1, 1)
			l.Job.Spec.Groups, l.Claims = append(l.Job.Spec.Groups, l.Job.Spec.Groups[0]), []fleet.Claim{{Node: "n1", Tasks: 1}, {Node: "n3", Group: 1, Tasks: 1}}
			if !e.Delegates() {
				l.Job.Spec.Requeue = false
			} else {
				l.Claims[0].Node, l.Claims[1].Node = "p", "p"
			}
			if err := e.Launch(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			lock := s.act(t, time.Now(), "n1")
			s.with(func() { s.jobs = nil })
			until(t, e, func(r engine.Report) bool { return r.Uncertain })
			awaits(t, "the probes", func() (ok bool) { s.with(func() { ok = s.submitted-1 >= len(asked) }); return ok })
			for i, n := range asked {
				polls := e.Polls().Count
				awaits(t, "some polls", func() bool { return e.Polls().Count >= polls+10 })
				if r, err := e.Inspect(t.Context(), l.Ref); err != nil || r.Gone {
					t.Fatalf("%d of %d nodes have answered: %+v, %v", i, len(asked), r, err)
				}
				if err := os.WriteFile(lock+".probe."+n, []byte("none\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if r := until(t, e, gone); r.Cause != engine.NodeLost {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestANodeThatFailedAndLives: slurmctld calls a job failed for a node that answers. The node is
// asked before the attempt is said to be gone; where the job's partition is not there any more,
// outside of it. Of a node that is down Slurm's word counts.
//
// Seen to fail with: Slurm's word counting always.
func TestANodeThatFailedAndLives(t *testing.T) {
	for name, down := range map[string]bool{"up": false, "down": true} {
		t.Run(name, func(t *testing.T) {
			s := &stage{nodes: []site.Node{{Name: "n1", CPUs: 8, Available: !down, Down: down}}}
			e, _, _ := play(t, s)
			s.act(t, time.Now(), "n1")
			s.with(func() { s.refuseOnce = fault.New(fault.Invalid, "invalid partition specified") })
			s.ends(site.NodeFailed, time.Now().Truncate(time.Second), "n1")
			if !down {
				until(t, e, func(r engine.Report) bool {
					if r.Gone {
						t.Fatalf("an end without a proof: %+v", r)
					}
					return r.Uncertain
				})
				awaits(t, "a probe", func() (ok bool) {
					s.with(func() { ok = s.submitted > 2 && strings.Contains(s.script, "does anything") })
					return ok
				})
				var script string
				s.with(func() { script = s.script })
				if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			if r := until(t, e, gone); r.Cause != engine.NodeLost || r.Exit.OK() || r.Uncertain {
				t.Errorf("%+v", r)
			}
		})
	}
}
