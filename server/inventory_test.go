package server

import (
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestInventoryIsShown: whole to administrators; others see names of others in none of it,
// and what these hold summed up.
//
// Seen to fail with: associations of others left in; use not summed up.
func TestInventoryIsShown(t *testing.T) {
	inv := &fleet.Inventory{
		Partitions:   []fleet.Partition{{Name: "main", State: "UP"}},
		Associations: []fleet.Association{{Account: "physics"}, {Account: "physics", User: "anna"}, {Account: "physics", User: "bob"}},
		Use: []fleet.Use{
			{User: "bob", Partition: "main", Running: 1, GPUs: 2, Waiting: 3}, {User: "eve", Partition: "main", Running: 2, GPUs: 1}, {User: "anna", Partition: "main", Ours: true, Running: 1, GPUs: 4},
		},
	}
	p := servertest.NewPlane()
	p.PoolViews = append(p.PoolViews, pools.View{Pool: fleet.Pool{Name: "b", Engine: "slurm"}}, pools.View{Pool: fleet.Pool{Name: "c", Engine: "slurm"}})
	p.Engines = map[string]engine.Engine{"b": servertest.Delegate{Inv: inv}, "c": servertest.Delegate{}}
	r := start(t, p, nil)
	all, err := r.Admin(t).Inventory(t.Context(), "b")
	if err != nil || len(all.Associations) != 3 || len(all.Use) != 3 || len(all.Partitions) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	c, err := client.New(client.Options{URL: r.URL, Token: r.Token(t, "anna", nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mine, err := c.Inventory(t.Context(), "b")
	if err != nil || len(mine.Associations) != 2 || mine.Associations[1].User != "anna" {
		t.Errorf("%+v, %v", mine, err)
	}
	if want := []fleet.Use{{Partition: "main", Running: 3, Waiting: 3, GPUs: 3}, {User: "anna", Partition: "main", Ours: true, Running: 1, GPUs: 4}}; !slices.Equal(mine.Use, want) {
		t.Errorf("%+v", mine.Use)
	}
	if len(inv.Associations) != 3 || inv.Use[0].User != "bob" {
		t.Error("what the engine keeps was changed")
	}
	for pool, want := range map[string]fault.Kind{"local": fault.Unsupported, "c": fault.Unavailable, "nowhere": fault.NotFound} {
		if _, err := c.Inventory(t.Context(), pool); fault.KindOf(err) != want {
			t.Errorf("%s: %v", pool, err)
		}
	}
}
