package slurm_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
)

// TestServesOverARestart: the first that the next engine says of a replica is what it saw, not that it
// is unready.
func TestServesOverARestart(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "health"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &stage{nodes: []site.Node{{Name: "n1", Address: "127.0.0.1", CPUs: 8, Available: true}}}
	var cfg slurm.Config
	e, _ := stageWith(t, s, func(c *slurm.Config) { c.ServicePorts = [2]int{20400, 20599}; cfg = *c })
	l := planReplica(dir, "n1")
	l.Job.Spec.Serve.Readiness.Delay = 200 * time.Millisecond
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	runAsNode(t, s, dir)
	before := untilServes(t, e, func(s engine.Endpoints) bool { return s.Ready })
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := slurm.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if first := untilServes(t, next, func(engine.Endpoints) bool { return true }); !first.Ready || len(first.List) != 2 || first.List[0] != before.List[0] {
		t.Errorf("the next engine says first %+v", first)
	}
}
