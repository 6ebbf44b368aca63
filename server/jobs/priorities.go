package jobs

import (
	"cmp"
	"math"
	"net/http"
	"slices"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/priority"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/transport"
)

func (s *Service) registerOrder() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/shares", Verb: auth.SeePolicy, ID: "shares", Tag: "policy", Owned: true,
		Summary: "Usage and fair share of accounts and users", About: "Shares, what was used, and the fair-share factor that comes of it, as of the last tick. Users of others' only where the caller may see their jobs.",
	}, func(c *call, _ *transport.Nothing) (*api.Shares, error) { return c.listShares(), nil })
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{job}/priority", Verb: auth.SeeJob, ID: "priority", Tag: "jobs", Owned: true,
		Summary: "How the priority of a waiting job adds up", About: "The parts add up to the very number that orders the queue.",
	}, func(c *call, in *JobPath) (*api.Priority, error) {
		v, err := c.findJob(in.Job, auth.SeeJob)
		if err != nil {
			return nil, err
		}
		p, err := s.cfg.Plane.PriorityOf(c.Ctx(), v.Job.ID)
		if err != nil {
			return nil, err
		}
		return shownPriority(&v, &p), nil
	})
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/priorities", Verb: auth.SeeJob, ID: "priorities", Tag: "jobs", Owned: true,
		Summary: "The priorities of all jobs that wait",
	}, func(c *call, _ *transport.Nothing) (*api.Priorities, error) { return c.listPriorities() })
}

// listShares lists how everybody stands whom the caller may see.
func (c *call) listShares() *api.Shares {
	list, tres := c.s.cfg.Plane.Shares(c.Ctx())
	limits := c.minuteLimits()
	out := &api.Shares{TRES: tres, Shares: []api.Share{}}
	below := make([][]int, len(list))
	for i := range list {
		if p := list[i].Parent; p >= 0 {
			below[p] = append(below[p], i)
		}
	}
	var walk func(i, depth int)
	walk = func(i, depth int) {
		s := &list[i]
		if s.User == "" || !c.s.cfg.Policy.Private || c.ID.Admin || s.User == c.ID.Name {
			x := shownShare(list, i, depth, tres)
			x.Limits = limits[s.Ref]
			out.Shares = append(out.Shares, x)
		}
		slices.SortStableFunc(below[i], func(a, b int) int { return cmp.Compare(kindOf(&list[a]), kindOf(&list[b])) })
		for _, k := range below[i] {
			walk(k, depth+1)
		}
	}
	if len(list) > 0 {
		walk(0, 0)
	}
	return out
}

// kindOf puts users before accounts.
func kindOf(s *query.Standing) int {
	if s.User != "" {
		return 0
	}
	return 1
}

func shownShare(list []query.Standing, i, depth int, tres []string) api.Share {
	s := &list[i]
	out := api.Share{
		Account: s.Account, User: s.User, Depth: depth, Raw: int64(s.Shares), Norm: s.Standing.Shares, Used: s.Raw,
		Usage: s.Standing.Usage, Factor: s.Factor, Guest: s.Guest,
	}
	switch s.Shares {
	case 0:
		out.Raw = 1
	case account.NoShares:
		out.Raw = 0
	}
	if s.Parent >= 0 {
		out.Parent = list[s.Parent].Account
	}
	if all := list[0].Raw; all > 0 {
		out.OfAll = s.Raw / all
	}
	if !math.IsInf(s.Level, 1) {
		out.Level = &s.Level
	}
	for k, name := range tres {
		if out.Minutes == nil {
			out.Minutes = map[string]float64{}
		}
		out.Minutes[name] = s.TRES[k] / 60 / priority.Unit(name)
	}
	for k, name := range query.RestNames {
		if s.Rest[k] > 0 {
			if out.Rest == nil {
				out.Rest = map[string]float64{}
			}
			out.Rest[name] = s.Rest[k] / 60 / priority.Unit(name)
		}
	}
	return out
}

// minuteLimits are the limits on what accounts and users use up, in minutes.
func (c *call) minuteLimits() map[account.Ref]map[string]float64 {
	out := map[account.Ref]map[string]float64{}
	p, err := c.s.cfg.Plane.Policy(c.Ctx(), 0)
	if err != nil || p.Rules == nil {
		return out
	}
	note := func(ref account.Ref, l *account.Limits) {
		for name, n := range l.GroupMinutes {
			if out[ref] == nil {
				out[ref] = map[string]float64{}
			}
			out[ref][name] = float64(n) / priority.Unit(name)
		}
	}
	for i := range p.Rules.Accounts {
		a := &p.Rules.Accounts[i]
		note(account.Ref{Account: a.Name}, &a.Limits)
		for k := range a.Users {
			note(account.Ref{Account: a.Name, User: a.Users[k].Name}, &a.Users[k].Limits)
		}
	}
	return out
}

// factorWeights are those of the factors that count.
func (c *call) factorWeights() map[string]float64 {
	p, err := c.s.cfg.Plane.Policy(c.Ctx(), 0)
	if err != nil || p.Rules == nil || p.Rules.Priority.Zero() {
		return nil
	}
	w := &p.Rules.Priority
	out := map[string]float64{}
	note := func(name string, n uint32) {
		if n != 0 {
			out[name] = float64(n)
		}
	}
	note("age", w.Age)
	note("association", w.Association)
	note("fair_share", w.FairShare)
	note("job_size", w.JobSize)
	note("partition", w.Partition)
	note("qos", w.QOS)
	for name, n := range w.TRES {
		note("tres/"+name, n)
	}
	return out
}

// listPriorities lists the jobs that wait and that the caller may see.
func (c *call) listPriorities() (*api.Priorities, error) {
	byID := map[job.ID]query.Priority{}
	var ids []job.ID
	for _, p := range c.s.cfg.Plane.Priorities(c.Ctx()) {
		byID[p.Job] = p
		ids = append(ids, p.Job)
	}
	out := &api.Priorities{Jobs: []api.Priority{}, Weights: c.factorWeights()}
	for _, id := range ids {
		v, err := c.s.cfg.Plane.Job(c.Ctx(), id)
		if err != nil || !c.MaySee(&v) {
			continue // it has left meanwhile
		}
		p := byID[id]
		out.Jobs = append(out.Jobs, *shownPriority(&v, &p))
	}
	slices.SortStableFunc(out.Jobs, func(a, b api.Priority) int {
		return cmp.Or(cmp.Compare(b.Tier, a.Tier), cmp.Compare(b.Priority, a.Priority), cmp.Compare(uint64(a.Eligible-1), uint64(b.Eligible-1)), cmp.Compare(a.ID, b.ID)) // those that do not grow older last
	})
	return out, nil
}

func shownPriority(v *state.View, p *query.Priority) *api.Priority {
	spec := v.Job.Spec
	out := &api.Priority{
		Job: v.Job.Name(), ID: uint64(v.Job.ID), User: spec.Owner.User, Account: cmp.Or(p.Assoc.Account, spec.Account), QOS: spec.QOS,
		Priority: p.Breakdown.Priority, Fixed: p.Fixed, Tier: p.Tier, Eligible: p.Eligible, At: p.At, Ageless: p.Ageless,
	}
	if len(spec.Partitions) > 0 {
		out.Partition = spec.Partitions[0]
	}
	for _, x := range p.Parts {
		out.Parts = append(out.Parts, api.PriorityPart{Name: x.Name, Factor: x.Factor, Weight: x.Weight, Points: x.Points})
	}
	return out
}
