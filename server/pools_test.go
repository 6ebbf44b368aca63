package server

import (
	"errors"
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestPoolsAreShown: to everybody, and how engines are reached to administrators alone.
func TestPoolsAreShown(t *testing.T) {
	p := servertest.NewPlane()
	p.PoolViews = append(p.PoolViews, pools.View{
		Pool: fleet.Pool{Name: "b", Engine: "slurm"}, Added: &state.PoolSpec{Name: "b", Engine: "slurm", Settings: []byte(`{"ssh":"login1"}`), By: job.Actor{Name: "root"}},
	})
	p.Nodes[0].Jobs, p.Nodes[0].Held = []job.ID{7}, map[int][]job.ID{0: {7}}
	p.Nodes[1].Jobs, p.Nodes[1].Held = []job.ID{7}, map[int][]job.ID{0: {7}}
	p.Nodes[3].Node.Pool = "b"
	r := start(t, p, func(c *Config) { c.Engines = []string{"slurm"} })
	list, err := r.Admin(t).Pools(t.Context())
	if err != nil || len(list.Pools) != 2 || !slices.Equal(list.Engines, []string{"slurm"}) {
		t.Fatalf("%+v, %v", list, err)
	}
	home, b := list.Pools[0], list.Pools[1]
	if home.State != api.PoolUp || home.Gang != "strict" || home.Jobs != 1 || home.DevicesUsed != 2 || !home.Default {
		t.Errorf("%+v", home)
	}
	if b.State != api.PoolOpening || string(b.Settings) != `{"ssh":"login1"}` || b.By != "root" || b.Jobs != 0 {
		t.Errorf("%+v", b)
	}
	c, err := client.New(client.Options{URL: r.URL, Token: r.Token(t, "anna", nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if list, err = c.Pools(t.Context()); err != nil || list.Pools[1].Settings != nil || list.Pools[0].Jobs != 1 {
		t.Errorf("a user is told %+v, %v", list, err)
	}
	if n, err := c.Node(t.Context(), "v4"); err != nil || n.Engine != "slurm" || n.Pool != "b" {
		t.Errorf("%+v, %v", n, err)
	}
	if i, err := c.Info(t.Context()); err != nil || len(i.Pools) != 2 || i.Pools[1].Settings != nil || i.Pools[1].Name != "b" {
		t.Errorf("%+v, %v", i, err)
	}
}

func TestAPoolThatLacksSomethingIsNotAdded(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, func(c *Config) { c.Engines = []string{"slurm"} })
	c := r.Admin(t)
	ask := api.NewPool{Name: "b", Engine: "slurm"}
	p.Findings = []engine.Finding{{What: "site", State: engine.Found, Text: "north"}, {What: "rights", State: engine.Missing, Text: "none", Mend: "sacctmgr …"}, {What: "disk", State: engine.Missing, Text: "none"}}
	var e *api.Error
	if _, err := c.AddPool(t.Context(), &ask); !errors.As(err, &e) || e.Status != 409 || len(e.Errors) != 2 || e.Errors[0].Message != "pool b: rights: none" || e.Errors[0].Remedy != "sacctmgr …" || e.Remedy == "" {
		t.Errorf("it is added: %+v", e)
	}
	ask.Check = true
	if done, err := c.AddPool(t.Context(), &ask); err != nil || done.Added || done.Missing != 2 || len(done.Findings) != 3 {
		t.Errorf("a look: %+v, %v", done, err)
	}
	if len(p.Changes) != 0 {
		t.Errorf("the control plane was asked for %q", p.Changes)
	}
	ask.Check, ask.Force = false, true
	if done, err := c.AddPool(t.Context(), &ask); err != nil || !done.Added {
		t.Errorf("with force: %+v, %v", done, err)
	}
	if !slices.Equal(p.Changes, []string{"add pool b"}) || p.PoolViews[1].Added.By.Name == "" {
		t.Errorf("the control plane was asked for %q", p.Changes)
	}
	if _, err := c.AddPool(t.Context(), &api.NewPool{Name: "b"}); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) != "kinds of engine here: slurm" {
		t.Errorf("without a kind: %v", err)
	}
}
