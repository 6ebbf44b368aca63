package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/whatif"
)

// WhatIf is a change to try. Parts of it can be combined.
type WhatIf struct {
	AddNodes int    // nodes more, …
	Like     string // … like this one; empty: like the first of the pool
	Pool     string // … in this pool; empty: that of the node
	Drain    string // nodes to take away: a host list, or a domain of the topology
	Quotas   map[string]int64
	Policy   *account.Policy // instead of the one in force; nil: that one
	Submit   []*job.Spec     // jobs that are not there yet
	// Handover says which machines would be handed over on demand by rules; nil: none is.
	Handover func(*Ahead, *account.Handover) HandoverPlan
}

// HandoverPlan is what rules of hand-over would do now.
type HandoverPlan struct {
	Moves []Handover
	Pools []HandoverPool // of the rules, in their order
}

// HandoverPool is how a pool stands before the moves.
type HandoverPool struct {
	Pool                  string
	Machines, Idle, Lacks int    // Lacks is GPUs, or CPUs where no machine has GPUs
	Why                   string // it lacks some and gets nothing; empty: it lacks nothing, or gets a machine
}

// Handover is a machine that goes from one pool to another.
type Handover struct {
	Machine, From, To string
	Takes             time.Duration // until its new pool can use it
	Reason            string
}

// WhatIfDone is the effect of a change.
type WhatIfDone struct {
	whatif.Answer
	Now       time.Time
	Added     []string             // names of the nodes that were invented
	Drained   []string             // nodes that were taken away
	Submitted map[job.ID]*job.Spec // the jobs that were invented
	Starts    map[job.ID]time.Time // when they start; no entry: not within the bounds
	Handover  HandoverPlan         // of the rules that are tried
}

// whatIfTime bounds one question.
const whatIfTime = time.Minute

// addedMost bounds the nodes that one question may invent.
const addedMost = 20_000

// WhatIf runs the core forward from its present state on estimated run times, with a change and
// without it. It takes a moment, apart from the loop.
func (rd *Reader) WhatIf(ctx context.Context, q *WhatIf) (*WhatIfDone, error) {
	ctx, cancel := context.WithTimeout(ctx, whatIfTime)
	defer cancel()
	out := &WhatIfDone{Submitted: map[job.ID]*job.Spec{}, Starts: map[job.ID]time.Time{}}
	var change *whatif.Change
	var err error
	looked := rd.runAhead(ctx, func(s *sched.Snapshot, now sched.Instant, took whatif.Took) {
		if change, err = q.buildChange(s, now, rd.whatIfSpec, out); err != nil {
			return
		}
		if q.Handover != nil && q.Policy != nil && len(q.Policy.Handover.Pools) > 0 {
			out.Handover = q.Handover(rd.aheadOf(s, now, took), &q.Policy.Handover)
			handOver(s, change, out.Handover.Moves)
		}
		b := whatif.Bounds{Stop: func() bool { return ctx.Err() != nil }}
		before := whatif.Run(s, now, &whatif.Change{}, took, b)
		after := whatif.Run(s, now, change, took, b)
		out.Answer, out.Now = *whatif.Compare(before, after), state.FromNanos(int64(now))
		for i := range after.Jobs {
			if j := &after.Jobs[i]; out.Submitted[j.ID] != nil && j.Start != 0 {
				out.Starts[j.ID] = state.FromNanos(int64(j.Start))
			}
		}
	})
	return out, cmp.Or(looked, err)
}

// buildChange is the question as events.
func (q *WhatIf) buildChange(s *sched.Snapshot, now sched.Instant, asked func(*job.Spec) *job.Spec, out *WhatIfDone) (*whatif.Change, error) {
	ch := &whatif.Change{Policy: q.Policy}
	if err := q.addNodes(s, ch, out); err != nil {
		return nil, err
	}
	if err := q.drainNodes(s, ch, out); err != nil {
		return nil, err
	}
	if len(q.Quotas) > 0 {
		p, err := withQuotas(cmp.Or(q.Policy, s.Policy), q.Quotas)
		if err != nil {
			return nil, err
		}
		ch.Policy = p
	}
	if err := q.addJobs(ch, now, asked, out); err != nil {
		return nil, err
	}
	if ch.Zero() {
		return nil, fault.New(fault.Invalid, "say what should change").Advise("for example: cox whatif --add-nodes 4; or --drain NODES, --quota ACCOUNT=GPUS, --policy FILE, --submit FILE")
	}
	return ch, nil
}

// handOver adds hand-overs to a change: at once nothing new starts on the nodes of the old pool, and once they
// are done the new pool uses its nodes. What runs there goes on.
func handOver(s *sched.Snapshot, ch *whatif.Change, list []Handover) {
	for _, h := range list {
		for _, n := range s.Nodes {
			if !slices.Equal(n.Machines(), []string{h.Machine}) {
				continue
			}
			switch n.Pool {
			case h.From:
				n.State, n.Why = fleet.Draining, "as if"
				ch.Nodes = append(ch.Nodes, n)
			case h.To:
				n.State, n.Why = fleet.Up, ""
				ch.Later = append(ch.Later, whatif.LaterNode{In: h.Takes, Node: n})
			}
		}
	}
}

// inventedMost bounds the jobs that one question may invent, tasks of arrays each.
const inventedMost = 10_000

// addJobs invents jobs. The tasks of an array are jobs of their own; those beyond its %N
// are taken to be held back by nothing.
func (q *WhatIf) addJobs(ch *whatif.Change, now sched.Instant, asked func(*job.Spec) *job.Spec, out *WhatIfDone) error {
	var all []*job.Spec
	for _, spec := range q.Submit {
		one := *spec
		tasks := 1
		if a := spec.Array; a != nil {
			tasks = len(a.Indices)
			one.Array = nil
		}
		spec = asked(&one)
		if len(all)+tasks > inventedMost {
			return fault.New(fault.Invalid, "more than %d jobs cannot be tried at once", inventedMost).Advise("a shorter --array tells as much")
		}
		for range tasks {
			all = append(all, spec)
		}
	}
	id := state.LastJob - job.ID(len(all))
	for _, spec := range all {
		out.Submitted[id] = spec
		ch.Submit = append(ch.Submit, sched.Submitted{Job: id, Spec: spec, Priority: spec.Priority - spec.Nice, At: now})
		id++
	}
	return nil
}

func (q *WhatIf) addNodes(s *sched.Snapshot, ch *whatif.Change, out *WhatIfDone) error {
	if q.AddNodes == 0 {
		return nil
	}
	if q.AddNodes < 0 || q.AddNodes > addedMost {
		return fault.New(fault.Invalid, "%d nodes cannot be added", q.AddNodes).Advise("1 to %d", addedMost)
	}
	i := slices.IndexFunc(s.Nodes, func(n fleet.Node) bool {
		return (q.Like == "" || n.Is(q.Like)) && (q.Pool == "" || n.Pool == q.Pool)
	})
	switch {
	case i < 0 && q.Like != "":
		return fault.New(fault.NotFound, "there is no node %s to add others like it", q.Like).Advise("cox nodes lists them")
	case i < 0:
		return fault.New(fault.NotFound, "there is no node in pool %q to add others like it", q.Pool).Advise("cox nodes lists them; --like NODE names one")
	}
	taken := map[string]bool{}
	for _, n := range s.Nodes {
		taken[n.Name] = true
	}
	for k := 1; len(out.Added) < q.AddNodes; k++ {
		n := s.Nodes[i]
		n.Name, n.State, n.Why = fmt.Sprintf("new%d", k), fleet.Up, ""
		if taken[n.Name] {
			continue
		}
		ch.Nodes = append(ch.Nodes, n)
		out.Added = append(out.Added, n.Name)
	}
	return nil
}

func (q *WhatIf) drainNodes(s *sched.Snapshot, ch *whatif.Change, out *WhatIfDone) error {
	if q.Drain == "" {
		return nil
	}
	names, err := hostlist.Expand(q.Drain)
	if err != nil {
		return fault.New(fault.Invalid, "--drain: %w", err).Advise("a host list, or a domain of the topology: v[1-4], rack-7")
	}
	for _, n := range s.Nodes {
		if slices.ContainsFunc(names, n.Is) || slices.ContainsFunc(n.Path, func(d string) bool { return slices.Contains(names, d) }) {
			n.State, n.Why = fleet.Draining, "as if"
			ch.Nodes = append(ch.Nodes, n)
			out.Drained = append(out.Drained, n.Name)
		}
	}
	if len(out.Drained) == 0 {
		return fault.New(fault.NotFound, "no node and no domain of the topology is called %s", q.Drain).Advise("cox nodes lists them")
	}
	return nil
}

// withQuotas is a policy in which accounts may hold other numbers of devices: the
// nominal amount of a quota where an account has one ("account/flavour" where that has
// several), else the limit of its group.
func withQuotas(p *account.Policy, quotas map[string]int64) (*account.Policy, error) {
	next := account.Policy{}
	if p != nil {
		next = *p
	}
	next.Accounts = slices.Clone(next.Accounts)
	for full, devices := range quotas {
		name, flavor, _ := strings.Cut(full, "/")
		i := slices.IndexFunc(next.Accounts, func(a account.Account) bool { return a.Name == name })
		if i < 0 {
			return nil, fault.New(fault.NotFound, "the site's rules have no account %q", name).Advise("accounts there: %s", accountNames(next.Accounts))
		}
		a := &next.Accounts[i]
		if a.Quota != nil {
			if err := setNominal(a, flavor, resource.Amount(devices)*resource.Amount(resource.WholeDevice)); err != nil {
				return nil, err
			}
			continue
		}
		if flavor != "" {
			return nil, fault.New(fault.Invalid, "account %s has no quota, so that it has none of flavor %s either", name, flavor).
				Advise("%s=%d changes the limit on all its devices", name, devices)
		}
		group := account.TRES{"gpu": resource.Amount(devices) * resource.Amount(resource.WholeDevice)}
		for k, v := range a.Limits.Group {
			if k != "gpu" {
				group[k] = v
			}
		}
		a.Limits.Group = group
	}
	return &next, nil
}

// setNominal gives an account another nominal amount of devices of a flavour; "": of the
// only one of which it has any.
func setNominal(a *account.Account, flavor string, devices resource.Amount) error {
	q := *a.Quota
	q.Flavors = slices.Clone(q.Flavors)
	a.Quota = &q
	var names []string
	at, res := -1, -1
	for i := range q.Flavors {
		k := slices.IndexFunc(q.Flavors[i].Resources, func(r account.ResourceQuota) bool { return r.Name == "gpu" })
		if k < 0 {
			continue
		}
		names = append(names, q.Flavors[i].Flavor)
		if flavor == q.Flavors[i].Flavor || flavor == "" {
			at, res = i, k
		}
	}
	switch {
	case len(names) == 0:
		return fault.New(fault.Invalid, "account %s has a quota, but none of devices", a.Name).
			Advise("change it in the document and try that: cox whatif --policy FILE")
	case at < 0:
		return fault.New(fault.NotFound, "account %s has no quota of devices of flavor %s", a.Name, flavor).Advise("flavors there: %s", strings.Join(names, ", "))
	case flavor == "" && len(names) > 1:
		return fault.New(fault.Invalid, "account %s has a quota of %d flavors: one number does not say which of them", a.Name, len(names)).
			Advise("name one of %s: --quota %s/%s=%d", strings.Join(names, ", "), a.Name, names[0], int64(devices)/int64(resource.WholeDevice))
	}
	q.Flavors[at].Resources = slices.Clone(q.Flavors[at].Resources)
	q.Flavors[at].Resources[res].Nominal = devices
	return nil
}

func accountNames(list []account.Account) string {
	if len(list) == 0 {
		return "none"
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return strings.Join(names, ", ")
}
