package control

import (
	"context"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
)

// Estimate is when and where a job would start if it were submitted now.
type Estimate struct {
	Start   time.Time // if every running job uses its whole limit; zero: nobody can tell
	Nodes   []string
	Part    string          // partition of the nodes
	Reasons []reason.Reason // why not now

	Preview *engine.Preview // nil: not asked for, or the engine has none
}

// Estimate says when and where a job would start, without keeping anything of it.
func (c *Control) Estimate(ctx context.Context, s Submission) (Estimate, error) {
	spec := new(job.Spec)
	*spec = *s.Spec
	spec.Pool = c.pools.NameOf(spec)
	if err := checkSpec(spec, c.cfg.Clock.Now().UnixNano()); err != nil {
		return Estimate{}, err
	}
	if _, err := c.pools.CheckAble(c.pools.ByName(spec.Pool), spec); err != nil {
		return Estimate{}, err
	}
	if err := c.validateDraft(ctx, &engine.JobDraft{Spec: spec, Script: s.Script, Env: s.Env}, s.Keeping); err != nil {
		return Estimate{}, err
	}
	if _, err := c.lookUp(ctx, dependencyOf(spec)); err != nil {
		return Estimate{}, err
	}
	out, claims, err := c.estimateStart(spec)
	if err != nil || !s.Preview {
		return out, err
	}
	if p, ok := c.pools.EngineFor(spec).(engine.Previewer); ok {
		if state.IsDelegated(claims) {
			claims = nil
		}
		out.Preview, err = p.Preview(&engine.JobDraft{Spec: spec, Script: s.Script, Env: s.Env, Claims: claims})
	}
	return out, err
}

// estimateStart asks the core for an estimate.
func (c *Control) estimateStart(spec *job.Spec) (Estimate, []fleet.Claim, error) {
	now := c.cfg.Clock.Now()
	c.state.Lock()
	defer c.state.Unlock()
	if why := c.pools.WhyInfeasible(c.core, spec); len(why) > 0 {
		return Estimate{}, nil, &RefusedError{why}
	}
	at, claims, why := c.core.Estimate(sched.Instant(now.UnixNano()), c.state.AggregateSpec(spec, c.pools.NameOf(spec)), spec.Priority-spec.Nice)
	out := Estimate{Start: state.FromNanos(int64(at)), Reasons: why}
	for _, cl := range claims {
		if !slices.Contains(out.Nodes, cl.Node) && !aggregate.Is(cl.Node) {
			out.Nodes = append(out.Nodes, cl.Node)
		}
	}
	out.Part = c.partitionOf(spec, claims)
	if spec.Begin.After(out.Start) && !out.Start.IsZero() {
		out.Start = spec.Begin
	}
	return out, claims, nil
}

// partitionOf is the partition that a job with claims runs in: the first that it asks for, else
// the first of its nodes, or its pool.
func (c *Control) partitionOf(spec *job.Spec, claims []fleet.Claim) string {
	pool := c.pools.NameOf(spec)
	if len(spec.Partitions) > 0 {
		return spec.Partitions[0]
	}
	if len(claims) > 0 {
		if n, ok := c.state.NodeWithDrain(fleet.NodeKey{Pool: pool, Name: claims[0].Node}); ok && len(n.Parts) > 0 {
			return n.Parts[0]
		}
	}
	return pool
}

// Fits says why a job could never run in the pool that it names, as Submit would refuse it; nil:
// it could. known is false if the pool's engine has not said which nodes it has: then nothing
// else is asked.
func (c *Control) Fits(ctx context.Context, s Submission) (known bool, err error) {
	spec := s.Spec
	if err := checkSpec(spec, c.cfg.Clock.Now().UnixNano()); err != nil {
		return true, err
	}
	p, err := c.pools.CheckAble(c.pools.ByName(spec.Pool), spec)
	if err != nil {
		return true, err
	}
	known, why := c.feasibleNow(p, spec)
	switch {
	case len(why) > 0:
		return true, &RefusedError{why}
	case !known:
		return false, nil
	}
	return true, c.validateDraft(ctx, &engine.JobDraft{Spec: spec, Script: s.Script, Env: s.Env}, s.Keeping)
}

// feasibleNow is Set.WhyInfeasible outside of the loop. Nothing is refused until the core has
// heard of all nodes.
func (c *Control) feasibleNow(p *pools.Member, spec *job.Spec) (known bool, why []reason.Reason) {
	c.state.Lock()
	defer c.state.Unlock()
	if !p.Known {
		return false, nil
	}
	for _, e := range c.state.Events {
		switch e.(type) {
		case sched.NodeSet, sched.NodeRemoved:
			return true, nil
		}
	}
	return true, c.pools.WhyInfeasible(c.core, spec)
}

func dependencyOf(s *job.Spec) *job.Dependency {
	if s.Depends.IsZero() {
		return nil
	}
	return &s.Depends
}
