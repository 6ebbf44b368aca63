package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
)

func newEngine(t *testing.T, cfg local.Config) *local.Engine {
	t.Helper()
	if cfg.Root == "" {
		cfg.Root = t.TempDir()
	}
	if cfg.Nodes == nil {
		cfg.Nodes = local.VirtualRoom(local.RoomConfig{Naming: cfg.Naming, Seed: cfg.Root}, four())
	}
	e, err := local.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, e) })
	return e
}

// endAll kills what a test left, and closes the engine.
func endAll(t *testing.T, e *local.Engine) {
	t.Helper()
	if e.Closed() {
		return // another one took its place
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	all, err := e.List(ctx)
	if err != nil {
		t.Error(err)
	}
	for _, r := range all {
		if r.Gone {
			continue
		}
		if err := e.Stop(ctx, r.Ref, engine.Stop{}); err != nil {
			t.Error(err)
		}
		until(t, e, r.Ref, func(r engine.Report) bool { return r.Gone })
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// until waits for a report.
func until(t *testing.T, e engine.Engine, ref engine.Ref, want func(engine.Report) bool) engine.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var last engine.Report
	found := errors.New("found")
	err := e.Watch(ctx, "", func(ev engine.Event) error {
		if ev.Report.Ref != ref {
			return nil
		}
		last = ev.Report
		if want(last) {
			return found
		}
		return nil
	})
	if !errors.Is(err, found) {
		t.Fatalf("%v; last report %+v", err, last)
	}
	return last
}

func launchOf(n int, nodes []fleet.Node, dir, script string) *engine.Launch {
	j := &job.Job{ID: 1, Attempt: 1, Spec: &job.Spec{
		Name: "test", WorkDir: dir, Groups: []job.TaskGroup{{Tasks: job.Count{Want: n}}},
		Program: job.Program{Kind: job.Batch, ScriptName: "test.sh"},
	}}
	l := &engine.Launch{
		Ref: engine.Ref{Allocation: 1, Attempt: 1}, Job: j, Script: []byte(script), Env: os.Environ(), Grace: time.Second,
	}
	for _, n := range nodes[:n] {
		l.Claims = append(l.Claims, fleet.Claim{Node: n.Name, Tasks: 1})
	}
	return l
}

func TestBatchScriptRuns(t *testing.T) {
	e := newEngine(t, local.Config{Naming: local.NamedByRoot})
	nodes, _ := e.Nodes(t.Context())
	dir := t.TempDir()
	l := launchOf(4, nodes, dir, "#!/bin/sh\nhostname\nexit 3\n")
	began := time.Now()
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	r := until(t, e, l.Ref, func(r engine.Report) bool { return r.Phase >= engine.Running })
	t.Logf("running after %s", time.Since(began))
	r = until(t, e, l.Ref, func(r engine.Report) bool { return r.Gone })
	t.Logf("gone after %s", time.Since(began))
	if r.Cause != engine.Exited || r.Exit.Status != 3 {
		t.Errorf("report %+v", r)
	}
	out, err := os.ReadFile(filepath.Join(dir, "slurm-1.out"))
	if err != nil || strings.TrimSpace(string(out)) != nodes[0].Name {
		t.Errorf("output %q, %v", out, err)
	}
}
