package slurm_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
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

// looks is a directory of locks that counts how often one looks into it.
type looks struct {
	lockdir.Directory
	count atomic.Int64
}

func (l *looks) Look(ctx context.Context, names []string) ([]lockdir.Mark, error) {
	defer l.count.Add(1)
	return l.Directory.Look(ctx, names)
}

// TestServesWhereItWasLaunched: after a restart, with another range in the settings, a replica is
// believed to serve at ports of the range that it was launched with, and nowhere else.
//
// Seen to fail with: every port of a replica that was resumed; the range of now.
func TestServesWhereItWasLaunched(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "health"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &stage{nodes: []site.Node{{Name: "n1", Address: "127.0.0.1", CPUs: 8, Available: true}}}
	var cfg slurm.Config
	e, _ := stageWith(t, s, func(c *slurm.Config) { c.ServicePorts = [2]int{20600, 20699}; cfg = *c })
	if err := e.Launch(t.Context(), planReplica(dir, "n1")); err != nil {
		t.Fatal(err)
	}
	runAsNode(t, s, dir)
	before := untilServes(t, e, func(s engine.Endpoints) bool { return s.Ready })
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	truth := fmt.Sprintf("%d %d\n", before.List[0].Number, before.List[1].Number)
	files, err := filepath.Glob(filepath.Join(cfg.Room.Dir(), "*"))
	if err != nil {
		t.Fatal(err)
	}
	name := ""
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(text)) == strings.TrimSpace(truth) {
			name = f
		}
	}
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("6818 20700\n") // of slurmd, and of the settings now
	counted := &looks{Directory: cfg.Room}
	cfg.Room, cfg.ServicePorts = counted, [2]int{20700, 20799}
	next, err := slurm.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	for late := time.Now().Add(time.Minute); counted.count.Load() < 20 && time.Now().Before(late); {
		time.Sleep(time.Millisecond)
	}
	write(truth)
	if first := untilServes(t, next, func(engine.Endpoints) bool { return true }); len(first.List) != 2 || first.List[0] != before.List[0] {
		t.Errorf("the next engine says first %+v", first)
	}
}
