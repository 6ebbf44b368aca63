package route

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var update = flag.Bool("update", false, "write docs/reference/advise.md and golden files anew")

// published is one case of testdata/cases.json: facts, the answer that is ours, and
// what the published rule says of gangs.
type published struct {
	facts     map[string]any
	primary   string
	host      any
	gang      bool
	theirGang bool
	hybrid    bool
}

func cases(t *testing.T) []published {
	t.Helper()
	data, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Fields []string `json:"fields"`
		Cases  [][]any  `json:"cases"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	var out []published
	for _, values := range file.Cases {
		m := map[string]any{}
		for i, f := range file.Fields {
			m[f] = values[i]
		}
		c := published{facts: m, primary: m["primary"].(string), host: m["ray_host"]}
		c.gang, c.theirGang, c.hybrid = m["gang_scheduler_required"].(bool), m["published_rule_requires_gang"].(bool), m["hybrid_partition"].(bool)
		out = append(out, c)
	}
	return out
}

func (c published) advice() *Advice {
	f := &Facts{}
	for _, k := range Keys() {
		switch v := c.facts[string(k)].(type) {
		case float64:
			f.Override(k, int(v), "")
		case bool:
			f.Override(k, map[bool]int{true: 1}[v], "")
		}
	}
	return Advise(f)
}

func TestAllCases(t *testing.T) {
	all := cases(t)
	if len(all) != 256 {
		t.Fatalf("%d cases", len(all))
	}
	for _, c := range all {
		a := c.advice()
		var host any
		if h := a.RayHost(); h != "" {
			host = string(h)
		}
		if a.Primary() != c.primary || host != c.host || a.NeedsGang() != c.gang || a.Hybrid != c.hybrid {
			t.Errorf("%v: %s (ray on %v, gang %t, hybrid %t)", c.facts, a.Title(), host, a.NeedsGang(), a.Hybrid)
		}
		if len(a.Rules) == 0 || a.Engine == "" {
			t.Errorf("%v: nothing decided", c.facts)
		}
	}
}

// TestWhereWeDifferFromThePublishedRule lists the cases in which the published rule
// wants no gang scheduler and we do: Ray on k3s for coupled work on several nodes.
// k3s is Kubernetes: its scheduler places pod by pod, so two such jobs can each hold
// half of the nodes and wait for the other half for ever, whatever Ray does above.
func TestWhereWeDifferFromThePublishedRule(t *testing.T) {
	var got []string
	for _, c := range cases(t) {
		a := c.advice()
		if a.NeedsGang() == c.theirGang {
			continue
		}
		if a.Title() != "ray on k3s, gang scheduler REQUIRED" || c.facts["tightly_coupled"] != true || c.facts["nodes"].(float64) < 2 {
			t.Errorf("%v: %s", c.facts, a.Title())
		}
		last := a.Rules[slices.IndexFunc(a.Rules, func(r Fired) bool { return r.Rule == "ray-on-kube-gang" })]
		if !strings.Contains(last.Why, "k3s too") {
			t.Errorf("the reason does not speak of k3s: %s", last.Why)
		}
		var holds []string
		for _, k := range []string{"long_lived_services", "multi_tenant"} {
			if c.facts[k] == true {
				holds = append(holds, k)
			}
		}
		n, _ := json.Marshal(c.facts["nodes"])
		got = append(got, strings.Join(append([]string{string(n) + " nodes"}, holds...), " + "))
	}
	want := []string{
		"2 nodes", "8 nodes", "16 nodes", "2 nodes + multi_tenant", "8 nodes + multi_tenant", "16 nodes + multi_tenant",
		"2 nodes + long_lived_services", "8 nodes + long_lived_services", "16 nodes + long_lived_services",
		"2 nodes + long_lived_services + multi_tenant", "8 nodes + long_lived_services + multi_tenant", "16 nodes + long_lived_services + multi_tenant",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestEveryRuleIsNeeded: no rule is idle, and each one's facts are named in the
// trace.
func TestEveryRuleIsNeeded(t *testing.T) {
	spoke := map[string]bool{}
	for _, c := range cases(t) {
		f := &Facts{}
		for _, a := range c.advice().Rules {
			spoke[a.Rule] = true
		}
		for _, a := range Advise(&Facts{kept: true}).Rules {
			spoke[a.Rule] = true
		}
		f.need(Need{Kind: NeedModule, What: "cuda"})
		for _, a := range Advise(f).Rules {
			spoke[a.Rule] = true
		}
		f.Override(Containers, 1, "")
		f.Override(Nodes, 2, "")
		f.Override(TightlyCoupled, 1, "")
		f.Override(BareMetal, 1, "")
		for _, l := range []Runtime{MPI, Torchrun} {
			f.launchers = []launcher{{runtime: l}}
			for _, a := range Advise(f).Rules {
				spoke[a.Rule] = true
			}
		}
	}
	names := map[string]bool{}
	for _, r := range Rules() {
		if !spoke[r.Name] || names[r.Name] || r.Why == "" || r.Then == "" {
			t.Errorf("rule %q: never applies, is there twice, or says nothing", r.Name)
		}
		names[r.Name] = true
	}
}

func TestFactsAndTheirOrigins(t *testing.T) {
	f := &Facts{}
	if n := f.Get(Nodes); n.Value != 1 || n.Origin != Assumed || n.Yes() {
		t.Errorf("%+v", n)
	}
	f.Set(Nodes, 2, File, Evidence{Line: 1})
	f.Set(Nodes, 8, File, Evidence{Line: 2})
	f.Set(Nodes, 4, File, Evidence{Line: 3})
	if n := f.Get(Nodes); n.Value != 8 || len(n.Evidence) != 1 || n.Evidence[0].Line != 2 {
		t.Errorf("%+v", n)
	}
	f.Override(Nodes, 1, "--nodes 1")
	f.Set(Nodes, 16, File)
	if n := f.Get(Nodes); n.Value != 1 || n.Origin != Flag {
		t.Errorf("%+v", n)
	}
	f.Set(TightlyCoupled, 1, File, Evidence{Line: 1})
	f.Override(TightlyCoupled, 0, "--tightly-coupled=false")
	f.Override(TightlyCoupled, 1, "--tightly-coupled")
	if n := f.Get(TightlyCoupled); !n.Yes() || n.Evidence[0].Text != "--tightly-coupled" {
		t.Errorf("%+v", n)
	}
	f.Tenants("a", 1)
	if f.Get(MultiTenant).Yes() {
		t.Error("one account is not several tenants")
	}
	f.Tenants("shared", 3)
	f.Tenants("shared", 3)
	if n := f.Get(MultiTenant); !n.Yes() || len(n.Evidence) != 1 || n.Origin != Inventory {
		t.Errorf("%+v", n)
	}
}

func TestExpect(t *testing.T) {
	f := &Facts{}
	f.Override(PythonPipeline, 1, "")
	a := Advise(f)
	for want, kind := range map[string]fault.Kind{
		"ray": 99, "kubernetes": 99, "ray on kubernetes": 99, " Ray on Kubernetes ": 99, "slurm": fault.Conflict, "ray on k3s": fault.Conflict,
		"mpi": fault.Conflict, "mpi on kubernetes": fault.Conflict, "": fault.Invalid, "nomad": fault.Invalid, "ray on nomad": fault.Invalid, "on": fault.Invalid,
	} {
		switch err := a.Expect(want); {
		case kind == 99 && err != nil:
			t.Errorf("%q: %v", want, err)
		case kind != 99 && (err == nil || fault.KindOf(err) != kind || fault.Remedy(err) == ""):
			t.Errorf("%q: %v, want %s with a remedy", want, err, kind)
		}
	}
}

func TestJudge(t *testing.T) {
	pools := []Pool{
		{"slurm-b", "slurm", engine.Abilities{Gang: engine.GangStrict}},
		{"k8s-a", "kube", engine.Abilities{Gang: engine.GangStrict}},
		{"k8s-q", "kube", engine.Abilities{Gang: engine.GangApproximate}},
		{"k8s-n", "kube", engine.Abilities{Gang: engine.GangNone}},
		{"here", "local", engine.Abilities{Gang: engine.GangStrict}},
		{"k8s-s", "kube", engine.Abilities{}}, // it has not answered
	}
	for _, c := range []struct {
		facts []Key
		want  string
	}{
		{nil, "possible suits suits suits possible suits"},
		{[]Key{TightlyCoupled, Nodes}, "possible suits consent never possible possible"},
		{[]Key{TightlyCoupled, Nodes, BareMetal}, "suits possible consent never possible possible"},
		{[]Key{PythonPipeline}, "possible suits suits suits possible suits"},
		{[]Key{TightlyCoupled}, "possible suits suits suits possible suits"},
	} {
		f := &Facts{}
		for _, k := range c.facts {
			f.Override(k, map[Key]int{Nodes: 4}[k]+map[bool]int{true: 1}[k != Nodes], "")
		}
		a := Advise(f)
		a.Judge(pools)
		var got []string
		for _, v := range a.Here {
			got = append(got, string(v.Fit))
			if v.Says == "" {
				t.Errorf("%v: nothing said of %s", c.facts, v.Pool)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v: %v, want %s", c.facts, got, c.want)
		}
	}
}
