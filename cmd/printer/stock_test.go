package printer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// TestStock: one table of nodes with Slurm's state and ours, and what stands beside them.
func TestStock(t *testing.T) {
	inv := &fleet.Inventory{
		Taken: now, Unknown: []string{"qos: no answer"},
		Partitions:   []fleet.Partition{{Name: "main", Default: true, State: "UP", Nodes: "n[1-3]"}, {Name: "short", State: "DOWN", MaxTime: 1800, MaxNodes: 1, Accounts: []string{"physics"}, QOS: "capped"}},
		Reservations: []fleet.Reservation{{Name: "course", Nodes: "n2", Start: now.Add(-time.Hour), End: now.Add(time.Hour), Users: []string{"ann"}}},
		Licenses:     []fleet.License{{Name: "matlab", Total: 4, Used: 1}},
		Nodes: []fleet.NodeStock{
			{Name: "n1", Level: fleet.Up, State: "mixed", CPUs: 64, CPUsOurs: 3, CPUsOthers: 8, GPUs: 8, GPUsOurs: 1, GPUsOthers: 2, Partitions: []string{"main", "short"}},
			{Name: "n2", Level: fleet.Draining, State: "idle+drain", Why: "fan is loud", CPUs: 64, GPUs: 8, Reservation: "course"},
			{Name: "n3", Level: fleet.Up, State: "idle", CPUs: 64},
		},
		Use: []fleet.Use{{User: "bob", Partition: "main", Running: 1, Waiting: 2, Nodes: 1, CPUs: 8, GPUs: 2}, {Partition: "main", Ours: true, Running: 1}},
	}
	var b strings.Builder
	p := printer.Page{Now: now}
	if err := printer.StockTable(inv, []api.Node{{Name: "n3", State: "draining", Why: "new firmware"}}).Write(&b, p); err != nil {
		t.Fatal(err)
	}
	if err := printer.Stock(&b, p, inv, now); err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(b.String()) {
		lines[strings.Join(strings.Fields(line), " ")] = true
	}
	for _, want := range []string{
		"NODE STATE THERE CPUS OURS OTHERS GPUS OURS OTHERS PARTITIONS RESERVATION WHY",
		"n1 up mixed 64 3 8 8 1 2 main,short - -", "n2 draining idle+drain 64 - - 8 - - - course fan is loud", "n3 draining idle 64 - - 0 - - - - new firmware",
		"not known: qos: no answer", "main* UP - - - n[1-3] -", "short DOWN 30 min 1 - - accounts physics; limits of qos capped", "matlab 1 4",
		"bob main others 1 2 1 8 2", "(others) main coxswain 1 0 - - -",
	} {
		if !lines[want] {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
	if !strings.Contains(b.String(), "course") || !strings.Contains(b.String(), "now") {
		t.Errorf("no reservation in\n%s", b.String())
	}
}
