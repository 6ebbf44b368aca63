package intake

import (
	"cmp"
	"context"
	"slices"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec/route"
)

// mayMove notes in which pools the request may run, if it may move while it waits. asked is what
// it was before the site's rules.
func (r *Request) mayMove(asked *job.Spec, a *route.Advice, list []route.Ranked, chosen int, gpus bool) {
	c := r.Spec.Chosen
	if r.Service != nil || r.Schedule != nil || !isMobile(r.Spec) {
		return
	}
	for i := range list {
		if list[i].Broken == "" && !list[i].RuledOut() && a.SameMachines(&list[chosen], &list[i], gpus) {
			c.Among = append(c.Among, list[i].Name)
		}
	}
	if len(c.Among) < 2 {
		c.Among = nil
		return
	}
	for _, f := range []struct {
		name   string
		filled bool
	}{
		{"account", asked.Account == "" && r.Spec.Account != ""},
		{"partition", len(asked.Partitions) == 0 && len(r.Spec.Partitions) > 0},
		{"qos", asked.QOS == "" && r.Spec.QOS != ""},
		{"time limit", asked.TimeLimit == 0 && r.Spec.TimeLimit != 0},
	} {
		if f.filled {
			c.Filled = append(c.Filled, f.name)
		}
	}
}

// isMobile reports whether nothing of a job is tied to its pool while it waits: no directory that
// was sent there, no reservation or nodes of that pool, no client that waits for it, no controller.
func isMobile(s *job.Spec) bool {
	return s.Upload == nil && s.Reservation == "" && s.Part == nil && s.Serve == nil && s.Program.Client == "" && !s.Elastic() &&
		(s.Program.Kind == job.Batch || s.Program.Kind == job.Direct) &&
		!slices.ContainsFunc(s.Groups, func(g job.TaskGroup) bool { return len(g.NodeList)+len(g.Exclude) > 0 })
}

// Place is a pool in which a waiting job could run.
type Place struct {
	Spec  *job.Spec // as it would be there
	Start query.PoolStart
}

// Places are the pools, apart from its own, to which a waiting job may move and that can run it now, with when
// they are expected to start it, in the order in which the advice prefers them. A job that may not
// move has none. script and env are those of the job.
func (s *Site) Places(ctx context.Context, sp *job.Spec, script []byte, env []string) ([]Place, error) {
	if sp.Chosen == nil || len(sp.Chosen.Among) == 0 || !isMobile(sp) {
		return nil, nil
	}
	rules, err := s.rulesInForce(ctx)
	if err != nil {
		return nil, err
	}
	home := pools.DefaultPool(s.Plane.Pools())
	open := *sp
	for _, f := range sp.Chosen.Filled {
		switch f {
		case "account":
			open.Account = ""
		case "partition":
			open.Partitions = nil
		case "qos":
			open.QOS = ""
		case "time limit":
			open.TimeLimit = 0
		}
	}
	var out []Place
	for _, name := range sp.Chosen.Among {
		if name == cmp.Or(sp.Pool, home) {
			continue
		}
		there := open
		there.Groups, there.Pool = slices.Clone(open.Groups), name
		if s.applyRules(ctx, rules, &there) != nil {
			continue
		}
		known, err := s.Plane.Fits(ctx, control.Submission{Spec: &there, Script: script, Env: env})
		if err != nil || !known {
			continue
		}
		start := s.Plane.ExpectedIn(ctx, &engine.JobDraft{Spec: &there, Script: script, Env: env}, 0)
		if name == home {
			there.Pool = "" // as it always was
		}
		out = append(out, Place{&there, start})
	}
	return out, nil
}
