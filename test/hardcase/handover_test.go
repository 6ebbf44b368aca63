package hardcase

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/service/handover/controller"
	"github.com/coxswain-sched/coxswain/store"
)

// twoPools is a control plane whose pools slurm and k8s have the machine m: node s of the one and node k of the
// other. One machine cannot be two clusters' here, so both engines are the fake one; test/slurm and test/kube
// have real ones.
type twoPools struct {
	t       *testing.T
	worlds  map[string]*fake.World
	control *control.Control
	moves   *controller.Controller
}

func newTwoPools(t *testing.T) *twoPools {
	t.Helper()
	s := &twoPools{t: t, worlds: map[string]*fake.World{}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	cfg := control.Config{Store: &store.Memory{}, Who: "test", Grace: time.Second}
	var engines []*fake.Engine
	for pool, node := range map[string]string{"slurm": "s", "k8s": "k"} {
		w := fake.NewWorld(fake.Config{
			Now:    time.Now,
			Nodes:  []fleet.Node{{Name: node, Hosts: []string{"m"}, State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 32 * resource.GiB}}},
			Script: func(*engine.Launch) fake.Outcome { return fake.Outcome{Run: time.Minute} },
		})
		s.worlds[pool] = w
		running.Go(func() { w.Run(ctx) })
		e := w.Open()
		engines = append(engines, e)
		p := pools.Pool{Pool: fleet.Pool{Name: pool, Engine: "fake"}, Engine: e}
		if cfg.Pools = append(cfg.Pools, p); pool == "slurm" { // the first one owns the machine
			cfg.Pools[0], cfg.Pools[len(cfg.Pools)-1] = cfg.Pools[len(cfg.Pools)-1], cfg.Pools[0]
		}
	}
	var err error
	if s.control, err = control.Open(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	s.moves = controller.New(controller.Config{Plane: controller.NewPlane(s.control)})
	running.Go(func() { s.moves.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		_ = s.control.Close()
		for _, e := range engines {
			_ = e.Close()
		}
		running.Wait()
	})
	s.until("the machine is slurm's", func(o *fleet.MachineOwner) bool { return o.Pool == "slurm" })
	return s
}

func (s *twoPools) move(pool string) {
	s.t.Helper()
	out, err := s.moves.Move(s.t.Context(), job.Actor{Name: "root"}, controller.Request{Nodes: []string{"m"}, To: pool})
	if err != nil || out[0].Err != nil {
		s.t.Fatal(err, out)
	}
}

// until lives until the machine's record is so.
func (s *twoPools) until(what string, is func(*fleet.MachineOwner) bool) {
	s.t.Helper()
	var o fleet.MachineOwner
	for range 600 {
		var ok bool
		if o, ok = s.control.MachineOwner("m"); ok && is(&o) {
			return
		}
		time.Sleep(time.Second) // of the bubble
		synctest.Wait()
	}
	s.t.Fatalf("never: %s; %+v", what, o)
}

// takes reports whether an engine takes new work on the machine.
func (s *twoPools) takes(pool, node string) bool {
	taken := s.worlds[pool].StartForeign(node, engine.NodeWork{Kind: "pod", Name: "probe"}, false) == nil
	s.worlds[pool].EndForeign(node, "probe")
	return taken
}

// TestHardCase_42_drainsStay: an administrator's drain outlives hand-overs to that pool and back. On two fake
// engines.
func TestHardCase_42_drainsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTwoPools(t)
		s.worlds["k8s"].Drain("k", "its fan is noisy")
		s.move("k8s")
		s.until("it waits for the administrator", func(o *fleet.MachineOwner) bool {
			return o.Pool == "k8s" && strings.Contains(o.Waits, "draining (its fan is noisy)")
		})
		s.move("slurm")
		s.until("it is back", func(o *fleet.MachineOwner) bool { return o.Pool == "slurm" && !o.Moving() })
		c, err := s.control.EngineOf("k8s").(engine.NodeFencer).Empty(t.Context(), "k")
		if err != nil || c.Drained != "its fan is noisy" || c.Fence == nil {
			t.Errorf("the mark of the administrator, and ours: %+v, %v", c, err)
		}
	})
}

// TestHardCase_43_notWhileSomethingRuns: a machine is not handed over while a job runs there, nor while it ends. On
// two fake engines.
func TestHardCase_43_notWhileSomethingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTwoPools(t)
		a, err := s.control.Submit(t.Context(), control.Submission{By: job.Actor{Name: "ann", UID: 1000}, Spec: &job.Spec{
			Name: "x", Owner: job.Owner{User: "ann", UID: 1000}, WorkDir: "/", Program: job.Program{Kind: job.Direct, Args: []string{"x"}}, Pool: "slurm", TimeLimit: time.Hour,
			Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(1)}}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		ended := func() bool {
			v, err := s.control.Job(t.Context(), a.ID)
			return err == nil && v.Job.State.Final()
		}
		s.until("it runs", func(*fleet.MachineOwner) bool {
			v, err := s.control.Job(t.Context(), a.ID)
			return err == nil && v.Job.State == job.Running
		})
		s.move("k8s")
		s.until("it is handed over", func(o *fleet.MachineOwner) bool {
			if o.Pool == "k8s" && !ended() {
				t.Fatal("it was handed over while the job ran")
			}
			return o.Pool == "k8s" && !o.Moving()
		})
	})
}

// TestHardCase_44_oneEngineAtATime: a pod that tolerates everything, on the node past us, keeps the machine with its
// engine; at each instant one engine takes new work at most. On two fake engines; at random, with everything that
// goes wrong: test/simulate.
func TestHardCase_44_oneEngineAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTwoPools(t)
		s.move("k8s") // from now on both fences are kept
		s.until("it is handed over", func(o *fleet.MachineOwner) bool { return o.Pool == "k8s" && !o.Moving() })
		if s.takes("slurm", "s") || !s.takes("k8s", "k") {
			t.Error("the old engine takes work, or the new one does not")
		}
		s.move("slurm")
		if err := s.worlds["k8s"].StartForeign("k", engine.NodeWork{Kind: "pod", Name: "tolerates-all"}, true); err != nil {
			t.Fatal(err)
		}
		s.until("it waits for the pod", func(o *fleet.MachineOwner) bool { return o.Waits == "pod tolerates-all on k" })
		if s.takes("slurm", "s") || s.takes("k8s", "k") {
			t.Error("an engine takes new work during the hand-over")
		}
		s.worlds["k8s"].EndForeign("k", "tolerates-all")
		s.until("it is back", func(o *fleet.MachineOwner) bool { return o.Pool == "slurm" && !o.Moving() })
		if !s.takes("slurm", "s") || s.takes("k8s", "k") {
			t.Error("the owner takes no work, or the other engine does")
		}
	})
}

// TestHardCase_44a_silenceIsNotEmpty: the agent of the machine falls silent during the hand-over. The machine stays
// with its engine, however long that lasts, and goes when the agent has answered. On two fake engines.
func TestHardCase_44a_silenceIsNotEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTwoPools(t)
		s.worlds["slurm"].Silence("s")
		s.move("k8s")
		s.until("it waits for the agent", func(o *fleet.MachineOwner) bool {
			return o.Step == fleet.StepFence && strings.Contains(o.Waits, "not taken for empty")
		})
		for range 1800 {
			time.Sleep(time.Second) // of the bubble
			synctest.Wait()
			if o, _ := s.control.MachineOwner("m"); o.Pool != "slurm" || s.takes("k8s", "k") && s.takes("slurm", "s") {
				t.Fatalf("%+v", o)
			}
		}
		s.worlds["slurm"].Return("s")
		s.until("it is handed over", func(o *fleet.MachineOwner) bool { return o.Pool == "k8s" && !o.Moving() })
	})
}
