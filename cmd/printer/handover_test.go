package printer_test

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// TestDangers: only machines on which the engine of a pool could start work that does not own them, from the
// fence of a hand-over on the old pool's too.
//
// Seen to fail with: mayBeOpen that looks at no step.
func TestDangers(t *testing.T) {
	nodes := []api.MachineNode{{Pool: "s", Engine: "slurm", Node: "n1", State: "up"}, {Pool: "k", Engine: "kube", Node: "w1", State: "up"}}
	both := []string{"s", "k"}
	for name, tt := range map[string]struct {
		m    api.Machine
		want string // pools in danger
	}{
		"both open":                 {api.Machine{Pool: "s", Epoch: 1, Open: both}, "k"},
		"the other way round":       {api.Machine{Pool: "k", Epoch: 1, Open: both}, "s"},
		"fenced":                    {api.Machine{Pool: "s", Epoch: 1, Open: []string{"s"}}, ""},
		"nobody's record":           {api.Machine{Pool: "s", Open: both}, ""},
		"the owner is closed":       {api.Machine{Pool: "s", Epoch: 1, Open: []string{"k"}}, "k"},
		"asked":                     {api.Machine{Pool: "s", To: "k", Step: "asked", Epoch: 2, Open: []string{"s"}}, ""},
		"fenced by the record only": {api.Machine{Pool: "s", To: "k", Step: "fence", Epoch: 2, Open: []string{"s"}}, "s"},
		"walked back":               {api.Machine{Pool: "s", To: "k", Step: "fence", Back: true, Epoch: 2, Open: []string{"s"}}, ""},
		"admitted":                  {api.Machine{Pool: "k", To: "k", Last: "s", Step: "admit", Epoch: 2, Open: []string{"k"}}, ""},
	} {
		tt.m.Name, tt.m.Nodes = "m1", nodes
		var got []string
		for _, d := range printer.Dangers([]api.Machine{tt.m}) {
			got = append(got, d.Pool)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: %q, want %q", name, s, tt.want)
		}
	}
	list := []api.Machine{{Name: "m1", Pool: "s", Epoch: 1, Open: both, Nodes: nodes}, {Name: "m2", Pool: "s", Epoch: 1, Open: both, Nodes: nodes}}
	list[1].Nodes = []api.MachineNode{{Pool: "k", Engine: "kube", Node: "w2", State: "up"}}
	if got, want := printer.DangerText(printer.Dangers(list)), "m[1-2]: pool s owns the machine, and the engine of pool k could start work there too: no mark stands on w[1-2]\n  cox node fence 'm[1-2]' --reason \"pool s has it\"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
