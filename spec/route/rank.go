package route

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
)

// Pool is what the advice knows of a pool.
type Pool struct {
	Name   string
	Engine string
	Able   engine.Abilities
}

// Site is a pool that a job may go to.
type Site struct {
	Pool
	Declared bool   // its devices are numbers without hardware
	Silent   string // why it does not answer now; empty: it does
	Broken   string // why it could not be opened, so that nothing can go there; empty: it could
}

// Ranked is a site as an advice sees it.
type Ranked struct {
	Site
	Verdict PoolVerdict
	home    bool // it is the first pool
}

// Preference is one line of the order in which pools are preferred.
type Preference struct {
	Rule string // the name that a choice is recorded with
	Says string
}

// preferences are compared one after the other: the first in which two pools differ decides.
// The last one is the order of the pools themselves.
var preferences = []Preference{
	{"advised-engine", "the engine that is advised, before one on which it is possible"},
	{"as-it-is", "of a job that takes software or files from the machines: the machines themselves, before containers"},
	{"real-devices", "of a job that asks for GPUs: hardware, before numbers that were declared"},
	{"answers", "a pool whose engine answers now, before one that is silent"},
	{"first-able-pool", "the server's own pool, then the others by name"},
}

// Preferences returns a copy of the order.
func Preferences() []Preference { return slices.Clone(preferences) }

// Rank orders pools as the advice prefers them, and leaves out none: those that it rules out
// (Never, Consent) come last. The first one that is given is the server's own. Nothing of the
// moment counts but silence: neither load nor queues.
func (a *Advice) Rank(sites []Site, gpus bool) []Ranked {
	coupled := a.factOf(TightlyCoupled).Yes() && a.factOf(Nodes).Yes()
	out := make([]Ranked, len(sites))
	for i, s := range sites {
		out[i] = Ranked{Site: s, Verdict: PoolVerdict{Pool: s.Name, Engine: s.Engine}, home: i == 0}
		v := &out[i].Verdict
		v.Fit, v.Says = a.poolVerdict(s.Pool, coupled)
	}
	slices.SortStableFunc(out, func(x, y Ranked) int {
		if c := cmp.Compare(ruledOut(x), ruledOut(y)); c != 0 {
			return c
		}
		if i := a.firstDifference(x, y, gpus); i >= 0 {
			return a.compareBy(preferences[i].Rule, x, y)
		}
		return cmp.Or(compareBool(y.home, x.home), strings.Compare(x.Name, y.Name))
	})
	return out
}

// RuledOut reports whether an advice keeps work from a pool unless somebody names it.
func (r *Ranked) RuledOut() bool { return r.Verdict.Fit == Never || r.Verdict.Fit == Consent }

func ruledOut(r Ranked) int {
	if r.RuledOut() {
		return 1
	}
	return 0
}

// firstDifference is the first preference in which two pools differ; -1: none but their order.
func (a *Advice) firstDifference(x, y Ranked, gpus bool) int {
	for i, p := range preferences {
		if p.Rule == "real-devices" && !gpus {
			continue
		}
		if a.compareBy(p.Rule, x, y) != 0 {
			return i
		}
	}
	return -1
}

// SameMachines reports whether an early start counts between two pools: the job finds in both what
// it takes from the machines, and devices of the same sort.
func (a *Advice) SameMachines(x, y *Ranked, gpus bool) bool {
	return a.compareBy("as-it-is", *x, *y) == 0 && (!gpus || a.compareBy("real-devices", *x, *y) == 0) && x.RuledOut() == y.RuledOut()
}

func (a *Advice) compareBy(rule string, x, y Ranked) int {
	switch rule {
	case "advised-engine":
		return compareBool(x.Verdict.Fit != Suits, y.Verdict.Fit != Suits)
	case "as-it-is":
		return compareBool(len(a.Needs) > 0 && x.Engine == kube, len(a.Needs) > 0 && y.Engine == kube)
	case "real-devices":
		return compareBool(x.Declared, y.Declared)
	case "answers":
		return compareBool(x.Silent != "", y.Silent != "")
	}
	return 0
}

func compareBool(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return 1
	}
	return -1
}

// Because says why a pool goes before another one that comes first in their own order: the
// rule, and a sentence. Both are able as far as anybody knows.
func (a *Advice) Because(chosen, other Ranked, gpus bool) (rule, why string) {
	i := a.firstDifference(chosen, other, gpus)
	if i < 0 {
		return "first-able-pool", ""
	}
	switch rule = preferences[i].Rule; rule {
	case "advised-engine":
		why = string(a.Engine) + " is advised: " + strings.Join(a.engineReasons(), ", ")
	case "as-it-is":
		why = "it takes " + joinNames(needNames(a.Needs)) + " from the machines, and " + other.Name + " runs containers"
	case "real-devices":
		why = "it asks for GPUs, and those of " + other.Name + " are declared, numbers without hardware"
	case "answers":
		why = other.Name + " does not answer now"
	}
	return rule, why
}

func needNames(needs []Need) (out []string) {
	for _, n := range needs {
		out = append(out, n.What)
	}
	return out
}

// engineReasons are the facts by which the engine was chosen.
func (a *Advice) engineReasons() (out []string) {
	if len(a.Rules) > 0 {
		for _, k := range a.Rules[0].Facts {
			out = append(out, a.factOf(k).String())
		}
	}
	if len(out) == 0 && len(a.Needs) > 0 && a.Engine == Slurm {
		out = []string{"it takes " + joinNames(needNames(a.Needs)) + " from the machines"}
	}
	if len(out) == 0 {
		out = []string{"work of any kind"}
	}
	return out
}
