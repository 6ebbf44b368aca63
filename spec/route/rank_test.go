package route

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
)

// TestRank: the order of pools is the table's, whatever order they come in behind the first.
func TestRank(t *testing.T) {
	strict := engine.Abilities{Gang: engine.GangStrict}
	local := Site{Pool: Pool{"local", "local", strict}}
	a, b := Site{Pool: Pool{"slurm-a", "slurm", strict}}, Site{Pool: Pool{"slurm-b", "slurm", strict}}
	loose := Site{Pool: Pool{"aaa", "slurm", engine.Abilities{Gang: engine.GangNone}}}
	numbers, silent := local, a
	numbers.Declared, silent.Silent = true, "no answer"
	single, coupled, spread := &Facts{}, &Facts{}, &Facts{}
	for _, f := range []*Facts{coupled, spread} {
		f.Override(Nodes, 4, "")
		f.Override(TightlyCoupled, 1, "")
	}
	coupled.Override(BareMetal, 1, "")
	modules, both := &Facts{}, &Facts{}
	for _, f := range []*Facts{modules, both} {
		f.need(Need{Kind: NeedModule, What: "cuda"})
	}
	both.Override(Nodes, 4, "")
	both.Override(TightlyCoupled, 1, "")
	both.Override(BareMetal, 1, "")
	pods := Site{Pool: Pool{"a-pods", "kube", strict}}
	for _, tt := range []struct {
		name  string
		facts *Facts
		sites []Site
		gpus  bool
		want  string
		rule  string // why the first goes before the server's own
	}{
		{"a small job", single, []Site{local, b, a}, false, "local slurm-a slurm-b", "first-able-pool"},
		{"one that asks for GPUs", single, []Site{local, b, a}, true, "local slurm-a slurm-b", "first-able-pool"},
		{"declared GPUs", single, []Site{numbers, b, a}, true, "slurm-a slurm-b local", "real-devices"},
		{"declared GPUs that nobody wants", single, []Site{numbers, b}, false, "local slurm-b", "first-able-pool"},
		{"coupled on bare metal", coupled, []Site{local, b, a}, false, "slurm-a slurm-b local", "advised-engine"},
		{"coupled, of any sort", spread, []Site{local, b, a}, false, "local slurm-a slurm-b", "first-able-pool"},
		{"one that is silent", coupled, []Site{local, b, silent}, false, "slurm-b slurm-a local", "advised-engine"},
		{"the only one of its engine is silent", coupled, []Site{local, silent}, false, "slurm-a local", "advised-engine"},
		{"modules", modules, []Site{pods, local, a}, false, "local slurm-a a-pods", "advised-engine"},
		{"coupled, with modules, without a Slurm", both, []Site{pods, local}, false, "local a-pods", "as-it-is"},
		{"no modules", single, []Site{local, a, pods}, false, "a-pods local slurm-a", "advised-engine"},
		{"no gangs", coupled, []Site{local, loose, b}, false, "slurm-b local aaa", "advised-engine"},
		{"no gangs are needed", single, []Site{local, loose, b}, false, "local aaa slurm-b", "first-able-pool"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			adv := Advise(tt.facts)
			list := adv.Rank(tt.sites, tt.gpus)
			var names []string
			home := 0
			for i, r := range list {
				names = append(names, r.Name)
				if r.Name == tt.sites[0].Name {
					home = i
				}
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			rule, why := adv.Because(list[0], list[home], tt.gpus)
			if rule != tt.rule || (why == "") != (home == 0) {
				t.Errorf("because of %s (%q), want %s", rule, why, tt.rule)
			}
			if last := list[len(list)-1]; last.RuledOut() != (last.Name == "aaa" && tt.facts != single) {
				t.Errorf("%s: ruled out: %v", last.Name, last.RuledOut())
			}
		})
	}
}
