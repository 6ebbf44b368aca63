package route

import (
	"maps"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Fired is a rule that applied, and the facts that made it.
type Fired struct {
	Rule  string `json:"rule"`
	Facts []Key  `json:"facts"` // those that its conditions ask for
	Then  string `json:"then"`
	Why   string `json:"why"`
}

// Advice is where work belongs, and why.
type Advice struct {
	Engine  Engine  `json:"engine"`
	Runtime Runtime `json:"runtime,omitempty"` // on that engine
	AddOns  []AddOn `json:"add_ons,omitempty"`
	Hybrid  bool    `json:"hybrid"` // services apart, on Kubernetes
	Facts   []Fact  `json:"facts"`  // all, in a fixed order
	Rules   []Fired `json:"rules"`  // in the order in which they applied
	// Otherwise lists facts that nobody stated and that would change the answer.
	Otherwise []Otherwise `json:"otherwise,omitempty"`
	// Needs are what the work takes from the machines as it is written, and Or where it would go
	// without them: its shape belongs there.
	Needs []Need        `json:"needs,omitempty"`
	Or    *Alternative  `json:"or,omitempty"`
	Here  []PoolVerdict `json:"here,omitempty"`

	started []launcher
	kept    bool // it is written as a service
}

// Otherwise is a fact that is assumed not to hold, and the answer if it does.
type Otherwise struct {
	Fact  Key    `json:"fact"`
	Flag  string `json:"flag"` // that says so: "--bare-metal"
	Title string `json:"title"`
}

// Advise applies the rules to the facts. It always has an answer.
func Advise(f *Facts) *Advice {
	a := applyRules(f)
	a.Needs, a.kept = f.Needs(), f.kept
	if free := applyRules(f.withoutNeeds()); len(a.Needs) > 0 && free.Engine != a.Engine {
		a.Or = &Alternative{Engine: free.Engine, Title: free.Title(), If: conditionsOf(a.Needs)}
	}
	title := a.Title()
	for _, fact := range a.Facts {
		if fact.Origin != Assumed || fact.Key == Nodes {
			continue
		}
		g := *f
		g.m = maps.Clone(f.m)
		g.Override(fact.Key, 1, "")
		if other := applyRules(&g).Title(); other != title {
			a.Otherwise = append(a.Otherwise, Otherwise{fact.Key, FlagName(fact.Key), other})
		}
	}
	return a
}

// withoutNeeds are the facts as if the work took nothing from the machines.
func (f *Facts) withoutNeeds() *Facts {
	return &Facts{m: f.m, launchers: f.launchers, kept: f.kept}
}

// applyRules applies the rules.
func applyRules(f *Facts) *Advice {
	a := &Advice{Facts: f.All(), started: f.launchers}
	for _, r := range rules {
		if r.Stage == ChooseEngine && a.Engine != "" || r.Stage == ChooseRuntime && a.Runtime != Plain {
			continue
		}
		fired := Fired{Rule: r.Name, Facts: []Key{}, Then: r.Then, Why: r.Why}
		all := true
		for _, c := range r.When {
			fact, ok := c.holds(f, a.Engine)
			if all = all && ok; fact.Key != "" {
				fired.Facts = append(fired.Facts, fact.Key)
			}
		}
		if !all {
			continue
		}
		a.Rules = append(a.Rules, fired)
		a.applyRule(r)
	}
	return a
}

func (a *Advice) applyRule(r Rule) {
	switch r.Stage {
	case ChooseEngine:
		a.Engine = r.Engine
	case ChooseRuntime:
		a.Runtime = r.Runtime
	case ChooseAddOn:
		add := *r.AddOn
		add.Why = r.Why
		a.AddOns = append(a.AddOns, add)
	case ChooseSplit:
		a.Hybrid = r.Split
	}
}

// RayHost is the engine on which Ray is advised, "" if it is not.
func (a *Advice) RayHost() Engine {
	if a.Runtime == Ray && a.Engine != Slurm {
		return a.Engine
	}
	return ""
}

// Primary is what one would name in a word: "ray" where Ray is advised, otherwise
// the engine.
func (a *Advice) Primary() string {
	if a.RayHost() != "" {
		return string(Ray)
	}
	return string(a.Engine)
}

// NeedsGang reports whether a gang scheduler has to be added.
func (a *Advice) NeedsGang() bool {
	for _, x := range a.AddOns {
		if x.Name == GangScheduler && x.Required {
			return true
		}
	}
	return false
}

// Title is the answer in one line: "ray on kubernetes, gang scheduler REQUIRED".
func (a *Advice) Title() string {
	title := string(a.Engine)
	if a.Runtime != Plain {
		title = string(a.Runtime) + " on " + title
	}
	if a.Hybrid {
		title += ", services apart on kubernetes"
	}
	for _, x := range a.AddOns {
		if x.Required {
			title += ", " + x.Name + " REQUIRED"
		}
	}
	return title
}

// factOf returns one of the advice's facts.
func (a *Advice) factOf(k Key) Fact {
	for _, f := range a.Facts {
		if f.Key == k {
			return f
		}
	}
	return Fact{Key: k}
}

// Expect returns an error unless the advice is the expected one: an engine
// ("slurm"), a runtime ("ray"), or both ("ray on k3s").
func (a *Advice) Expect(want string) error {
	runtime, engine, both := strings.Cut(strings.ToLower(strings.TrimSpace(want)), " on ")
	if !both {
		runtime, engine = "", runtime
		switch Runtime(engine) {
		case Ray, MPI, Torchrun:
			runtime, engine = engine, ""
		}
	}
	known := map[string]bool{"": true, "slurm": true, "kubernetes": true, "k3s": true}
	runtimes := map[string]bool{"": true, "ray": true, "mpi": true, "torchrun": true}
	if !known[engine] || !runtimes[runtime] || engine+runtime == "" {
		return fault.New(fault.Invalid, "%q is no advice that can be expected", want).Advise("write slurm, kubernetes, k3s, ray, mpi, torchrun, or RUNTIME on ENGINE")
	}
	if engine != "" && engine != string(a.Engine) || runtime != "" && runtime != string(a.Runtime) {
		return fault.New(fault.Conflict, "expected %s, but this is for %s", want, a.Title()).Advise("leave out --expect to see the reasons")
	}
	return nil
}
