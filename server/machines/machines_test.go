package machines_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/service/handover/controller"
	"github.com/coxswain-sched/coxswain/store"
)

// site is a server whose two pools, a and b, have the machines m1 to m3.
type site struct {
	*client.Client
	control *control.Control
	worlds  map[string]*fake.World
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{worlds: map[string]*fake.World{}}
	cfg := control.Config{Store: &store.Memory{}, Who: "test"}
	for _, pool := range []string{"a", "b"} {
		var nodes []fleet.Node
		for _, n := range []string{"1", "2", "3"} {
			nodes = append(nodes, fleet.Node{Name: pool + n, Hosts: []string{"m" + n}, State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 32 * resource.GiB}})
		}
		s.worlds[pool] = fake.NewWorld(fake.Config{Now: time.Now, Nodes: nodes})
		e := s.worlds[pool].Open()
		t.Cleanup(func() { _ = e.Close() })
		cfg.Pools = append(cfg.Pools, pools.Pool{Pool: fleet.Pool{Name: pool, Engine: "fake"}, Engine: e})
	}
	var err error
	if s.control, err = control.Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.control.Close() })
	moves := controller.New(controller.Config{Plane: controller.NewPlane(s.control)})
	srv := server.New(server.Config{Plane: s.control, Name: "lab", Users: &user.Users{Lookup: servertest.Lookup}, Handovers: moves})
	socket := filepath.Join(t.TempDir(), "cox.sock")
	l, err := transport.ListenSocket(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- srv.Serve(ctx, l) }()
	go func() { moves.Run(ctx); ended <- nil }()
	t.Cleanup(func() { cancel(); <-ended; <-ended })
	if s.Client, err = client.New(client.Options{Socket: socket}); err != nil {
		t.Fatal(err)
	}
	return s
}

// until waits until a machine's record is so.
func (s *site) until(t *testing.T, machine string, is func(*fleet.MachineOwner) bool) {
	t.Helper()
	after := uint64(0)
	for {
		o, ok := s.control.MachineOwner(machine)
		if ok && is(&o) {
			return
		}
		_, last, _, err := s.control.Events(t.Context(), after)
		if err != nil {
			t.Fatal(err, o)
		}
		after = last
	}
}

// TestMoveOverTheAPI hands machines over and back over HTTP: by name, by count, and one of three that is refused.
func TestMoveOverTheAPI(t *testing.T) {
	s := newSite(t)
	ctx := t.Context()
	out, err := s.MoveMachines(ctx, &api.MachineMove{Nodes: []string{"a1"}, To: "b", Reason: "a test"})
	if err != nil || len(out.Machines) != 1 || out.Machines[0].Machine != "m1" || out.Machines[0].From != "a" || out.Machines[0].Why != "idle" || out.Machines[0].Epoch == 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	s.until(t, "m1", func(o *fleet.MachineOwner) bool { return o.Pool == "b" && !o.Moving() })
	_, err = s.MoveMachines(ctx, &api.MachineMove{Nodes: []string{"m1"}, To: "b"})
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("one machine that is there already: %v", err)
	}
	out, err = s.MoveMachines(ctx, &api.MachineMove{Nodes: []string{"m[1-3]"}, To: "b"})
	if err != nil || len(out.Machines) != 3 || out.Machines[0].Error == nil || out.Machines[0].Error.Title != "conflict" || out.Machines[1].Error != nil || out.Machines[2].Error != nil {
		t.Errorf("three, of which one is there already: %+v, %v", out, err)
	}
	for _, m := range []string{"m2", "m3"} {
		s.until(t, m, func(o *fleet.MachineOwner) bool { return o.Pool == "b" && !o.Moving() })
	}
	out, err = s.MoveMachines(ctx, &api.MachineMove{Count: 2, To: "a", DryRun: true})
	if err != nil || len(out.Machines) != 2 || out.Machines[0].Machine != "m1" || out.Machines[1].Machine != "m2" || out.Machines[0].Epoch != 0 {
		t.Errorf("a dry run: %+v, %v", out, err)
	}
	s.worlds["b"].Silence("b1")
	if _, err = s.MoveMachines(ctx, &api.MachineMove{Nodes: []string{"b1"}, To: "a", Deadline: 3600}); err != nil {
		t.Error(err)
	}
	s.until(t, "m1", func(o *fleet.MachineOwner) bool { return o.Step == fleet.StepFence })
	if out, err = s.AbortMoves(ctx, []string{"m1"}); err != nil || len(out.Machines) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	s.until(t, "m1", func(o *fleet.MachineOwner) bool { return o.Pool == "b" && !o.Moving() })
}

// TestFenceOverTheAPI closes the other pool's nodes over HTTP and opens them again; machines show it.
func TestFenceOverTheAPI(t *testing.T) {
	s := newSite(t)
	ctx := t.Context()
	if _, err := s.FenceMachines(ctx, &api.MachineFence{Nodes: []string{"m1"}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("without a reason: %v", err)
	}
	if _, err := s.FenceMachines(ctx, &api.MachineFence{Nodes: []string{"a1"}, Reason: "x"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("the owner's node: %v", err)
	}
	out, err := s.FenceMachines(ctx, &api.MachineFence{Nodes: []string{"b1", "a2"}, Reason: "a has it"})
	if err != nil || len(out.Machines) != 2 || out.Machines[0].Machine != "m1" || out.Machines[0].Nodes[0] != "b/b1" || out.Machines[0].Epoch == 0 || out.Machines[1].Error == nil {
		t.Fatalf("%+v, %v", out, err)
	}
	closed := func(want bool) {
		t.Helper()
		for {
			all, err := s.Machines(ctx)
			if err != nil || all.Machines[0].Closed != want {
				t.Fatalf("%+v, %v", all, err)
			}
			if n := all.Machines[0].Nodes[1]; n.Pool == "b" && (n.Fence != 0) == want {
				return
			}
			if err := s.control.LookAt(ctx, "b"); err != nil {
				t.Fatal(err)
			}
		}
	}
	closed(true)
	if out, err = s.FenceMachines(ctx, &api.MachineFence{Nodes: []string{"m1"}, Remove: true}); err != nil || out.Machines[0].Already {
		t.Errorf("%+v, %v", out, err)
	}
	closed(false)
}
