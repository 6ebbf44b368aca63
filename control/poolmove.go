package control

import (
	"context"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// PoolMove moves jobs that wait to another pool; their places in the queue stay. A job that was
// handed over to another scheduler has to be taken back with Withdraw then. It is fault.Conflict for
// a job that is not in the pool any more, or does not wait.
type PoolMove struct {
	From string    // pool in which the jobs are
	To   string    // pool to which they move
	As   *job.Spec // has what the site's rules make of the jobs there, and why they move (Spec.Chosen)
}

func (PoolMove) isOp() {}

// applyTo gives a job what it has in the other pool. Nothing else of it changes.
func (op *PoolMove) applyTo(s *job.Spec) {
	to := op.As
	s.Pool, s.Chosen, s.Partitions, s.Account, s.QOS, s.TimeLimit = to.Pool, to.Chosen, slices.Clone(to.Partitions), to.Account, to.QOS, to.TimeLimit
	s.Groups, s.Within, s.Levels, s.LicensesThere = slices.Clone(to.Groups), to.Within, to.Levels, to.LicensesThere
}

// askPoolMove stages the move of a job.
func (l *loop) askPoolMove(w *changeRequest, e *state.JobRecord, req *request, op PoolMove) error {
	waits := e.State == job.Pending || e.WaitsInPool() && !e.Ending()
	p := l.pools.ByName(op.To)
	switch {
	case !waits:
		return fault.New(fault.Conflict, "job %s is %s", e.Name(), e.StatusText())
	case e.Shared.Spec.Pool != op.From:
		return fault.New(fault.Conflict, "job %s is in pool %s now", e.Name(), e.Shared.Spec.Pool)
	case e.State != job.Pending && e.Report().Held:
		return fault.New(fault.Conflict, "job %s is held in pool %s", e.Name(), op.From)
	case p == nil || p.Leaving:
		return fault.New(fault.NotFound, "there is no pool %s", op.To).Advise("name one of %s", strings.Join(l.pools.ConfiguredNames(), ", "))
	}
	if _, ok := l.pools.ByNameOrFirst(op.From).Engine.(engine.Withdrawer); !ok && e.State != job.Pending {
		return fault.New(fault.Unsupported, "job %s was handed over to pool %s, which cannot give it back unless it has certainly not begun", e.Name(), op.From)
	}
	spec := *state.ViewOf(e).Job.Spec
	op.applyTo(&spec)
	if _, err := l.pools.CheckAble(p, &spec); err != nil {
		return err
	}
	if why := l.pools.WhyInfeasible(l.core, &spec); len(why) > 0 {
		return &RefusedError{why}
	}
	bare, own := state.SplitSpec(spec)
	own.Array = nil // an array has it once
	v := state.PoolMove{From: op.From, To: op.To, Own: &own, Spec: state.MustJSON(&bare), State: state.StatePointer(e.State)}
	if spec.Chosen != nil {
		v.Why = spec.Chosen.Why
	}
	l.stageFor(req, state.KindPoolMove, e.ID, w.by, v, nil)
	return nil
}

// Withdraw takes back a job that is to move from the queue of another scheduler, if it has not begun
// there. It may be called again. fault.Conflict: it has begun, and stays.
func (c *Control) Withdraw(ctx context.Context, id job.ID) error {
	c.state.RLock()
	e := c.state.Jobs[id]
	if e == nil || !e.WaitsInPool() || e.ExtraOrZero().PoolMoves.Under == nil {
		c.state.RUnlock()
		return nil
	}
	ref, spec := reconcile.Ref(e.Allocation()), job.Spec{Pool: e.Last.Pool}
	c.state.RUnlock()
	k, ok := c.pools.EngineFor(&spec).(engine.Withdrawer)
	if !ok {
		return nil
	}
	return k.Withdraw(ctx, ref)
}

// Settle waits until the scheduling core has heard of all that was asked for before.
func (c *Control) Settle(ctx context.Context) error {
	for range 2 { // a message is taken up after the step that follows the one before it
		if err := c.askLoop(ctx, message{}, func(_ *loop, answer func(error)) { answer(nil) }); err != nil {
			return err
		}
	}
	c.ForgetStarts()
	return nil
}
