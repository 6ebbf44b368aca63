package ondemand

import (
	"time"

	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/service/handover/demand"
)

// Plan says which machines rules would hand over, if the pools had lacked them for long enough.
func Plan(a *query.Ahead, rules *account.Handover) (out query.HandoverPlan) {
	in := demand.Observe(&demand.Site{State: a.State, Now: a.Now, Took: a.Took, Why: a.Why, Owners: a.Owners}, rules)
	in.Memory.Lacks = map[string]time.Time{}
	for i := range rules.Pools {
		in.Memory.Lacks[rules.Pools[i].Name] = in.Now.Add(-rules.Pools[i].LacksFor())
	}
	decided := demand.Decide(in)
	for i := range decided.Moves {
		m := &decided.Moves[i]
		out.Moves = append(out.Moves, query.Handover{Machine: m.Machine, From: m.From, To: m.To, Takes: m.Drain + demand.StepsTake, Reason: m.Reason})
	}
	for i := range decided.Pools {
		p := &decided.Pools[i]
		out.Pools = append(out.Pools, query.HandoverPool{Pool: p.Pool, Machines: p.Machines, Idle: p.Idle, Lacks: p.Lacks, Why: p.Why})
	}
	return out
}
