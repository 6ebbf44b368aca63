package slurm_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/slurm/site"
	"github.com/coxswain-sched/coxswain/fault"
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
