package pools

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
)

// A delegated pool hands work to a scheduler of its own. To the core such a pool is one node,
// and a job for it one claim on that node (sched/aggregate): the core decides whether and in
// which order jobs are handed over. Whether a job can ever run is asked of the real nodes.

// RealNodes has the nodes of a pool that is one node to the core.
type RealNodes struct {
	Nodes []fleet.Node // by name; never written in place
	core  *sched.Core  // knows these nodes and nothing else; nil: none were told
}

// TakeRealNodes takes in the nodes of a pool whose engine's own scheduler chooses among them. It reports
// whether they differ from those before.
func (p *Member) TakeRealNodes(nodes []fleet.Node, now func() sched.Instant) (changed bool) {
	if p.Real.core == nil {
		p.Real.core = sched.New(sched.Config{})
	}
	all := slices.Clone(nodes)
	slices.SortFunc(all, func(a, b fleet.Node) int { return cmp.Compare(a.Name, b.Name) })
	all = slices.CompactFunc(all, func(a, b fleet.Node) bool { return a.Name == b.Name })
	was := make(map[string]*fleet.Node, len(p.Real.Nodes))
	for i := range p.Real.Nodes {
		was[p.Real.Nodes[i].Name] = &p.Real.Nodes[i]
	}
	var events []sched.Event
	for i := range all {
		n := &all[i]
		n.Pool = p.Name
		if old := was[n.Name]; old == nil || !EqualNodes(old, n) {
			events = append(events, sched.NodeSet{Node: *n})
		}
		delete(was, n.Name)
	}
	for name := range was {
		events = append(events, sched.NodeRemoved{Pool: p.Name, Name: name})
	}
	if len(events) > 0 {
		p.Real.core.Step(now(), events...)
	}
	p.Real.Nodes = all
	return len(events) > 0
}

// RealNode is a node of such a pool, as its engine reports it; nil: it has none of that name. It is not to be
// written to.
func (p *Member) RealNode(name string) *fleet.Node {
	i, ok := slices.BinarySearchFunc(p.Real.Nodes, name, func(n fleet.Node, name string) int { return cmp.Compare(n.Name, name) })
	if !ok {
		return nil
	}
	return &p.Real.Nodes[i]
}

// AggregateNode is the one node that the core knows of such a pool: the sum of the real nodes on machines that
// the pool owns. whyNot says why no work may start on a node; empty: it may.
func (p *Member) AggregateNode(whyNot func(*fleet.Node) string) fleet.Node {
	nodes := slices.Clone(p.Real.Nodes)
	why, kept := "", 0
	for i := range nodes {
		if nodes[i].State != fleet.Up {
			continue
		}
		if w := whyNot(&nodes[i]); w != "" {
			nodes[i].State, why = fleet.Draining, w
			kept++
		}
	}
	out := aggregate.Node(p.Name, nodes)
	if out.State != fleet.Up && kept > 0 {
		out.State, out.Why = fleet.Draining, why
	}
	return out
}

// NotOwned lists the nodes of a pool whose engine's own scheduler chooses that no work may start on, because of who
// owns their machines. The caller holds the lock of the state. fault.Unavailable: its engine has not said yet which nodes it has.
func (p *Member) NotOwned(s *state.State) ([]string, error) {
	switch {
	case !p.Delegated || s.Owners.Len() == 0 && !s.ManyPools:
		return nil, nil
	case !p.Known:
		return nil, fault.New(fault.Unavailable, "pool %s has not said yet which nodes it has, so nobody knows which of them others own", p.Name)
	}
	var out []string
	for i := range p.Real.Nodes {
		if s.WhyNotOwned(&p.Real.Nodes[i]) != "" {
			out = append(out, p.Real.Nodes[i].Name)
		}
	}
	return out, nil
}

// NameOf is the name of the pool of a job.
func (ps *Set) NameOf(spec *job.Spec) string {
	return cmp.Or(spec.Pool, ps.AllPools()[0].Name)
}

// WhyInfeasible says what keeps a job from ever running where it is to run; nil: nothing. core
// knows the nodes of all pools, those of a delegated pool as one.
func (ps *Set) WhyInfeasible(core *sched.Core, spec *job.Spec) []reason.Reason {
	p := ps.ByName(ps.NameOf(spec))
	if p == nil || !p.Delegated {
		return core.Feasible(spec)
	}
	if p.Real.core == nil {
		return nil // nobody knows
	}
	return p.Real.core.Feasible(spec)
}
