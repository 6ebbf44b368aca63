package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/discover"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

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
	t.Cleanup(func() {
		if t.Failed() {
			dump(t, cfg.Root)
		}
		endAll(t, e)
	})
	return e
}

// four are the nodes of a test's room.
func four() []fleet.Node {
	var nodes []fleet.Node
	for range 4 {
		nodes = append(nodes, fleet.Node{State: fleet.Up, Devices: []fleet.Device{
			{Index: 0, Minor: -1, Kind: "gpu", Type: "h100", NUMA: -1, Declared: true},
			{Index: 1, Minor: -1, Kind: "gpu", Type: "h100", NUMA: -1, Declared: true},
		}})
	}
	return nodes
}

// dump shows what the supervisors of a failed test said.
func dump(t *testing.T, root string) {
	files, _ := filepath.Glob(filepath.Join(root, "a", "*", "n", "*", "[jl]o[ug]*"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil {
			t.Logf("%s\n%s", f, b)
		}
	}
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
func until(t testing.TB, e engine.Engine, ref engine.Ref, want func(engine.Report) bool) engine.Report {
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

func gone(r engine.Report) bool { return r.Gone }

func running(r engine.Report) bool { return len(r.Tasks) > 0 && r.Tasks[0].Running }

// everywhere says that every supervisor has acted on the command to go on: one that is
// stopped before that is ended, as one that does not act on a command.
func everywhere(r engine.Report) bool {
	return running(r) && !slices.ContainsFunc(r.Nodes, func(n engine.NodeReport) bool { return n.Phase < engine.Running })
}

// eventually waits for what no event tells.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// script plans a batch script in shell on the first n nodes of the room.
func plan(t testing.TB, e engine.Engine, n int, script ...string) *engine.Launch {
	t.Helper()
	nodes, err := e.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := &engine.Launch{
		Ref: engine.Ref{Allocation: 1, Attempt: 1},
		Job: &job.Job{ID: 7, Attempt: 1, Spec: &job.Spec{
			Name: "test", WorkDir: t.TempDir(), Groups: []job.TaskGroup{{Tasks: job.Count{Want: n}}},
			Program: job.Program{Kind: job.Batch, ScriptName: "test.sh"},
		}},
		Script: []byte("#!/bin/sh\n" + strings.Join(script, "\n") + "\n"),
		Env:    []string{"PATH=" + os.Getenv("PATH")}, Grace: 5 * time.Second,
	}
	for _, n := range nodes[:n] {
		l.Claims = append(l.Claims, fleet.Claim{Node: n.Name, Tasks: 1})
	}
	return l
}

func launch(t *testing.T, e engine.Engine, l *engine.Launch) {
	t.Helper()
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// run launches and waits for the end.
func run(t *testing.T, e engine.Engine, l *engine.Launch) engine.Report {
	t.Helper()
	launch(t, e, l)
	return until(t, e, l.Ref, gone)
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func succeeded(t *testing.T, r engine.Report) {
	t.Helper()
	if r.Cause != engine.Exited || !r.Exit.OK() {
		t.Errorf("%s, %s: %s", r.Cause, r.Exit, r.Message)
	}
}

func TestOneEnginePerDirectory(t *testing.T) {
	e := newEngine(t, local.Config{})
	nodes, _ := e.Nodes(t.Context())
	cfg := local.Config{Root: t.TempDir(), Nodes: nodes}
	first, err := local.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := local.New(cfg); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a second engine: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	second, err := local.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func TestLongRoot(t *testing.T) {
	root := filepath.Join(t.TempDir(), strings.Repeat("long/", 30)) // longer than a socket's name may be
	e := newEngine(t, local.Config{Root: root})
	succeeded(t, run(t, e, plan(t, e, 2, "exit 0")))
}

func TestVirtualRoom(t *testing.T) {
	a := local.VirtualRoom(local.RoomConfig{Naming: local.NamedByRoot, Seed: "a", Names: []string{"", "gpu7"}}, make([]fleet.Node, 600))
	b := local.VirtualRoom(local.RoomConfig{Seed: "b"}, make([]fleet.Node, 600))
	if a[0].Name != "v1" || a[1].Name != "gpu7" || b[0].Name != b[0].Address {
		t.Errorf("names %s, %s, %s", a[0].Name, a[1].Name, b[0].Name)
	}
	seen := map[string]bool{}
	for _, n := range append(a, b...) {
		if seen[n.Address] || !strings.HasPrefix(n.Address, "127.") || strings.HasPrefix(n.Address, "127.0.") {
			t.Errorf("address %s", n.Address)
		}
		seen[n.Address] = true
	}
}

// TestMachineHasScratchSpace: --tmp could never be met.
func TestMachineHasScratchSpace(t *testing.T) {
	if v := local.MachineCapacity(discover.Machine{MemoryBytes: 1 << 30}); v.Disk <= 0 || v.Memory != 1<<30 {
		t.Errorf("%+v", v)
	}
}
