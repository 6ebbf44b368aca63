package slurm_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestServesOnSlurm has a replica on a real cluster choose its ports, serve, be drained, and end.
func TestServesOnSlurm(t *testing.T) {
	t.Parallel()
	l := lab.Start(t, clusters["24.11"])
	e := newBench(func() site.Site { return l.Command() }, openHere).open(t, t.TempDir())
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "health"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	launch := planReplica(dir, l.Nodes[0])
	if err := e.Launch(t.Context(), launch); err != nil {
		t.Fatal(err)
	}
	ready := untilServes(t, e, func(s engine.Endpoints) bool { return s.Ready })
	if err := answers(ready); err != nil {
		t.Error(err)
	}
	if err := e.Stop(t.Context(), launch.Ref, engine.Stop{Drain: time.Hour, Grace: time.Minute, Reason: "it is replaced"}); err != nil {
		t.Fatal(err)
	}
	untilServes(t, e, func(s engine.Endpoints) bool { return !s.Ready })
	if err := answers(ready); err != nil {
		t.Errorf("while it is drained: %v", err)
	}
	if err := e.Stop(t.Context(), launch.Ref, engine.Stop{Grace: time.Minute, Reason: "it is replaced"}); err != nil {
		t.Fatal(err)
	}
	if r := until(t, e, gone); r.Cause != engine.Stopped || r.Message != "it is replaced" {
		t.Errorf("%s: %s", r.Cause, r.Message)
	}
	if err := answers(ready); err == nil {
		t.Error("it answers after its end")
	}
}
