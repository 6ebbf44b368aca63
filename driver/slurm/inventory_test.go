package slurm_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// aStock is a cluster with some rules.
func aStock() *fleet.Inventory {
	return &fleet.Inventory{
		Enforced:   []string{"associations", "limits", "qos"},
		Partitions: []fleet.Partition{{Name: "main", Default: true, State: "UP", Nodes: "n[1-2]"}, {Name: "short", State: "UP", MaxTime: 1800}},
		QOS:        []fleet.QOS{{Name: "normal"}},
		Associations: []fleet.Association{
			{Account: "root"},
			{Account: "optics", Parent: "root"},
			{Account: "optics", User: "ann", Default: true, QOS: []string{"normal"}},
		},
		Reservations: []fleet.Reservation{{Name: "course", State: "ACTIVE", Nodes: "n2", Start: time.Now().Add(-time.Hour), End: time.Now().Add(time.Hour)}},
	}
}

// filled opens an engine that knows the stock of a stage.
func filled(t *testing.T, s *stage, set func(*slurm.Config)) *slurm.Engine {
	t.Helper()
	e, _ := stageWith(t, s, set)
	for deadline := time.Now().Add(time.Minute); e.Inventory() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no stock was taken")
		}
	}
	return e
}

// draft is a specification with all that a job needs.
func draft(s *job.Spec) *engine.JobDraft {
	out := *s
	out.WorkDir, out.Program = "/w", job.Program{Kind: job.Direct, Args: []string{"prog"}}
	if out.Owner.User != "root" {
		out.Owner.UID = 1000
	}
	if len(out.Groups) == 0 {
		out.Groups = make([]job.TaskGroup, 1)
	}
	return &engine.JobDraft{Spec: &out}
}

// TestAdmit: what no rule of the cluster's ever takes (driver/slurm/validate) is refused in the
// pool's name, with the rule and what would mend it.
func TestAdmit(t *testing.T) {
	e := filled(t, &stage{stock: aStock()}, func(c *slurm.Config) { c.Identity = slurm.Identity{Mode: slurm.AsOwner, Root: true} })
	of := func(user string, s job.Spec) *job.Spec { s.Owner.User = user; return &s }
	for _, s := range []*job.Spec{of("ann", job.Spec{}), of("ann", job.Spec{Reservation: "course"}), of("root", job.Spec{Account: "physik"})} {
		if err := e.Admit(t.Context(), draft(s)); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for _, c := range []struct {
		s          *job.Spec
		want, mend string
	}{
		{of("ann", job.Spec{Partitions: []string{"shrt"}}), ": Slurm never runs this job: there is no partition shrt", "--partition: main, short"},
		{of("eve", job.Spec{}), ": Slurm never runs this job: user eve has no association with any account", "sacctmgr add user eve"},
	} {
		err := e.Admit(t.Context(), draft(c.s))
		if fault.KindOf(err) != fault.Invalid || !strings.HasPrefix(err.Error(), "pool ") || !strings.Contains(err.Error(), c.want) || !strings.Contains(fault.Remedy(err), c.mend) {
			t.Errorf("%v (%s)", err, fault.Remedy(err))
		}
	}
}

// TestAdmitWhatIsNotCertain: nothing is refused that the inventory does not say for certain.
//
// Seen to fail with: an old inventory believed.
func TestAdmitWhatIsNotCertain(t *testing.T) {
	e := filled(t, &stage{stock: aStock()}, func(*slurm.Config) {}) // whose the jobs are in Slurm is not known
	if err := e.Admit(t.Context(), draft(&job.Spec{Owner: job.Owner{User: "eve"}})); err != nil {
		t.Error(err)
	}
	if err := e.Admit(t.Context(), draft(&job.Spec{Account: "physik"})); err == nil {
		t.Error("an account that nobody has is taken")
	}
	e = filled(t, &stage{stock: aStock()}, func(c *slurm.Config) { c.Stock = time.Hour; c.Options = []string{"--partition=short"} })
	if err := e.Admit(t.Context(), draft(&job.Spec{Account: "optics", QOS: "normal", TimeLimit: time.Hour})); err == nil || !strings.Contains(err.Error(), "partition short") {
		t.Errorf("the pool's own partition: %v", err)
	}
	gone := &stage{stock: aStock()}
	e = filled(t, gone, func(c *slurm.Config) { c.Stock = time.Nanosecond })
	gone.with(func() { gone.stock = nil })
	awaits(t, "an inventory that is too old", func() bool { return e.Admit(t.Context(), draft(&job.Spec{Partitions: []string{"shrt"}})) == nil })
}

// TestInventory: nodes with what ours and others hold, the reservation that has them now,
// and jobs by user and partition.
//
// Seen to fail with: our jobs on two nodes counted whole on each; a reservation of tomorrow
// shown.
func TestInventory(t *testing.T) {
	s := &stage{
		stock: aStock(),
		nodes: []site.Node{
			{Name: "n1", State: "mixed", CPUs: 8, UsedCPUs: 6, GRES: "gpu:h100:4", Taken: "gpu:h100:3(IDX:0-2)", Available: true, Parts: []string{"main", "short"}},
			{Name: "n2", State: "idle+drain", Reason: "fan is loud", CPUs: 8, UsedCPUs: 1, GRES: "gpu:h100:4", Taken: "gpu:h100:1(IDX:0)", Drained: true},
		},
	}
	s.stock.Reservations = append(s.stock.Reservations, fleet.Reservation{Name: "upkeep", Nodes: "n1", Start: time.Now().Add(time.Hour), End: time.Now().Add(2 * time.Hour)})
	e, root := stageWith(t, s, func(c *slurm.Config) { c.Stock = time.Millisecond })
	begin(t, e, root)
	tag := ""
	for deadline := time.Now().Add(time.Minute); tag == ""; time.Sleep(time.Millisecond) {
		if s.with(func() {
			if len(s.jobs) > 0 {
				tag = s.jobs[0].Comment[:strings.Index(s.jobs[0].Comment, ":7:")+1] // cox:WORD:
			}
		}); time.Now().After(deadline) {
			t.Fatal("nothing was handed over")
		}
	}
	s.with(func() {
		s.everyone = []site.Held{
			{User: "ann", Partition: "main", Comment: tag + "1:1.1 mine", Running: true, Nodes: []string{"n1", "n2"}, CPUs: 3, GPUs: 2},
			{User: "bob", Partition: "main", Comment: "cox:other:1:1.1", Running: true, Nodes: []string{"n1"}, CPUs: 4, GPUs: 2},
			{User: "bob", Partition: "main"},
			{User: "bob", Partition: "main"},
		}
	})
	if _, err := e.Nodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	var inv *fleet.Inventory
	for deadline := time.Now().Add(time.Minute); inv == nil || len(inv.Use) < 2 || len(inv.Nodes) < 2; time.Sleep(time.Millisecond) {
		if inv = e.Inventory(); time.Now().After(deadline) {
			t.Fatalf("%+v", inv)
		}
	}
	want := []fleet.NodeStock{
		{Name: "n1", Level: fleet.Up, State: "mixed", Partitions: []string{"main", "short"}, CPUs: 8, CPUsOurs: 2, CPUsOthers: 4, GPUs: 4, GPUsOurs: 1, GPUsOthers: 2},
		{Name: "n2", Level: fleet.Draining, State: "idle+drain", Why: "fan is loud", Reservation: "course", CPUs: 8, CPUsOurs: 1, GPUs: 4, GPUsOurs: 1},
	}
	same(t, inv.Nodes, want)
	same(t, inv.Use, []fleet.Use{
		{User: "bob", Partition: "main", Running: 1, Waiting: 2, Nodes: 1, CPUs: 4, GPUs: 2},
		{User: "ann", Partition: "main", Ours: true, Running: 1, Nodes: 2, CPUs: 3, GPUs: 2},
	})
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
