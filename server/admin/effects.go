package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// policyEffects says what other rules would do at once to what waits and runs.
func (s *service) policyEffects(before, after *account.Policy) (out []string) {
	old, now := s.cfg.Rules.Under(before), s.cfg.Rules.Under(after)
	refused := newTally("waiting", "would be refused if submitted now, and will stay in the queue")
	running := newTally("running", "would be refused if submitted now, and will go on")
	held := map[account.Ref]*holding{}
	tree := account.NewTree(after)
	s.cfg.Plane.Scan(query.Filter{Live: true}, func(v *state.View) bool {
		err := now.Apply(asSubmitted(v.Job.Spec))
		if err != nil && old.Apply(asSubmitted(v.Job.Spec)) != nil {
			err = nil // it is no news
		}
		if v.Job.State == job.Pending {
			refused.add(v, err)
			return true
		}
		running.add(v, err)
		d := v.Demand()
		for i := tree.Of(v.Job.Spec.Account, v.Job.Spec.Owner.User); i >= 0; i = tree.Nodes[i].Parent {
			n := &tree.Nodes[i]
			if held[n.Ref] == nil {
				held[n.Ref] = &holding{}
			}
			held[n.Ref].add(d)
		}
		return true
	})
	for i := range tree.Nodes {
		n := &tree.Nodes[i]
		if h := held[n.Ref]; h != nil {
			out = append(out, h.exceededLimits(n)...)
		}
	}
	return append(append(out, refused.sentences()...), running.sentences()...)
}

// asSubmitted is of a job what the door looks at; what is left open is filled in there.
func asSubmitted(s *job.Spec) *job.Spec {
	return &job.Spec{Owner: s.Owner, Pool: s.Pool, Account: s.Account, QOS: s.QOS, Partitions: slices.Clone(s.Partitions), TimeLimit: s.TimeLimit, TimeMin: s.TimeMin}
}

// tally counts jobs by what is wrong with them.
type tally struct {
	state, what string
	n           int
	why         []string // in the order in which they were met
	names       map[string][]string
}

func newTally(state, what string) *tally {
	return &tally{state: state, what: what, names: map[string][]string{}}
}

func (t *tally) add(v *state.View, err error) {
	if err == nil {
		return
	}
	t.n++
	if _, known := t.names[err.Error()]; !known {
		t.why = append(t.why, err.Error())
	}
	t.names[err.Error()] = append(t.names[err.Error()], v.Job.Name())
}

// sentences shows some of the reasons, and of each some of the jobs.
func (t *tally) sentences() []string {
	if t.n == 0 {
		return nil
	}
	const most = 5
	jobs := "jobs"
	if t.n == 1 {
		jobs = "job"
	}
	out := []string{fmt.Sprintf("%d %s %s %s:", t.n, t.state, jobs, t.what)}
	for _, why := range t.why[:min(len(t.why), most)] {
		names := t.names[why]
		more := ""
		if n := len(names) - most; n > 0 {
			names, more = names[:most], fmt.Sprintf(" and %d more", n)
		}
		out = append(out, fmt.Sprintf("  %s%s: %s", strings.Join(names, ", "), more, why))
	}
	if n := len(t.why) - most; n > 0 {
		out = append(out, fmt.Sprintf("  and %d other reasons", n))
	}
	return out
}

// holding is what the running jobs of an account or user hold.
type holding struct {
	jobs   int64
	amount map[string]resource.Amount
}

func (h *holding) add(d job.Demand) {
	h.jobs++
	if h.amount == nil {
		h.amount = map[string]resource.Amount{}
	}
	add := func(name string, a resource.Amount) { h.amount[name] = h.amount[name].Add(a) }
	add("cpu", resource.Amount(d.CPUs*float64(resource.OneCPU)))
	add("memory", resource.Amount(d.Memory))
	add("gpu", resource.Amount(d.GPUs)*1000)
	add("node", resource.Amount(d.Nodes))
	if d.GPUType != "" {
		add("gpu:"+d.GPUType, resource.Amount(d.GPUs)*1000)
	}
}

// exceededLimits says which group limits are exceeded by what runs.
func (h *holding) exceededLimits(n *account.Node) (out []string) {
	l, who := (*account.Limits)(nil), "account "+n.Account
	switch {
	case n.Of != nil:
		l, who = &n.Of.Limits, n.User+" in account "+n.Account
	case n.Source != nil:
		l = &n.Source.Limits
	default:
		return nil
	}
	const goesOn = "; nothing is ended, and nothing new starts until enough has"
	for _, name := range []string{"cpu", "memory", "gpu", "node"} {
		if most, limited := l.Group[name]; limited && h.amount[name] > most {
			out = append(out, fmt.Sprintf("%s runs %s of %s, and may hold %s%s", who, shownAmount(name, h.amount[name]), name, shownAmount(name, most), goesOn))
		}
	}
	if l.GroupJobs != nil && h.jobs > *l.GroupJobs {
		out = append(out, fmt.Sprintf("%s has %d jobs running, and may have %d%s", who, h.jobs, *l.GroupJobs, goesOn))
	}
	if n.Of != nil && l.Jobs != nil && h.jobs > *l.Jobs {
		out = append(out, fmt.Sprintf("%s has %d jobs running, and may have %d%s", who, h.jobs, *l.Jobs, goesOn))
	}
	return out
}

func shownAmount(name string, a resource.Amount) string {
	switch name {
	case "memory":
		return resource.FormatBytes(a)
	case "cpu", "gpu":
		return resource.FormatCPU(a)
	}
	return fmt.Sprint(int64(a))
}
