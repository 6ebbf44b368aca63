package slurm_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
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
