// Package ondemand has machines handed over on demand: it asks service/handover/demand once a minute what
// the site's rules (handover:) would move, and has those hand-overs begun. One goroutine does it; without
// such rules it looks at nothing.
//
// # Guarantees
//
// Everything that lasts is in the records of the machines: who asked (By), why (Reason) and until when
// (Deadline). So a server that starts again goes on with the hand-overs under way, and begins the time anew
// that a pool must have lacked machines.
//
// It hands nothing over itself, and decides nothing: service/handover/controller does the steps.
package ondemand

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/service/handover/controller"
	"github.com/coxswain-sched/coxswain/service/handover/demand"
)

// Asker is who asks for the hand-overs of the rules, in the records of machines: no user of a system can have a name
// with a colon.
const Asker = "policy: handover"

// Plane is what it needs of a control plane.
type Plane interface {
	// LookAhead calls work with the state of the core and the records of machines.
	LookAhead(ctx context.Context, work func(*query.Ahead)) error
	// MachineOwners lists the records of machines.
	MachineOwners(ctx context.Context) []fleet.MachineOwner
	// Policy is the revision of the rules that is in force, with 0.
	Policy(ctx context.Context, rev uint64) (state.Policy, error)
	// Change changes jobs: an error for each, nil where it is done.
	Change(ctx context.Context, by job.Actor, ids []job.ID, op control.Op) ([]error, error)
}

// Move begins the hand-over of a machine, which is walked back if it is not done by the deadline, counted
// from now.
type Move func(ctx context.Context, by job.Actor, m *demand.Move, deadline time.Duration) error

// By begins hand-overs by the controller that does their steps.
func By(c *controller.Controller) Move {
	return func(ctx context.Context, by job.Actor, m *demand.Move, deadline time.Duration) error {
		moved, err := c.Move(ctx, by, controller.Request{Nodes: []string{m.Machine}, From: m.From, To: m.To, Deadline: deadline, Reason: m.Reason})
		if err != nil {
			return err
		}
		for i := range moved {
			if moved[i].Err != nil {
				return moved[i].Err
			}
		}
		return nil
	}
}

// Config are the parts of a controller.
type Config struct {
	Plane Plane
	Move  Move
	Held  func(service string) int // requests that wait for a replica; nil: nobody knows
	Now   func() time.Time         // nil: time.Now
	Log   *slog.Logger             // nil: none
}

// Pauses.
const (
	longestPause = time.Minute
	shortestWait = 5 * time.Second
	// rest is how long after the end of a drain a hand-over is walked back: for the other steps, and for
	// jobs that are requeued then.
	rest = 10 * time.Minute
)

// Controller has machines handed over on demand. Its methods are safe for concurrent use.
type Controller struct {
	cfg Config

	memory demand.Memory // of the goroutine of Run

	mu   sync.Mutex
	last Decision
}

// Decision is the last decision, for people.
type Decision struct {
	At    time.Time // zero: none was made, or no rules speak of it
	Pools []demand.Standing
}

// New makes a controller. Nothing moves until Run runs.
func New(cfg Config) *Controller {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Controller{cfg: cfg}
}

// Run decides until ctx ends.
func (c *Controller) Run(ctx context.Context) {
	for {
		pause := c.decideOnce(ctx)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// Last is the last decision.
func (c *Controller) Last() Decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// decideOnce makes a decision, begins its moves, and says how long to wait for the next one.
func (c *Controller) decideOnce(ctx context.Context) time.Duration {
	rules := c.handoverRules(ctx)
	if rules == nil {
		c.memory = demand.Memory{}
		c.keepLast(Decision{})
		return longestPause
	}
	var in *demand.Input
	var owners []fleet.MachineOwner
	err := c.cfg.Plane.LookAhead(ctx, func(a *query.Ahead) {
		owners = a.Owners
		in = demand.Observe(&demand.Site{
			State: a.State, Now: a.Now, Took: a.Took, Why: a.Why, Owners: owners, Held: c.cfg.Held,
			Stop: func() bool { return ctx.Err() != nil },
		}, rules)
	})
	if err != nil || in == nil || ctx.Err() != nil {
		return longestPause
	}
	in.Memory = c.memory
	out := demand.Decide(in)
	c.memory = out.Memory
	c.keepLast(Decision{At: in.Now, Pools: out.Pools})
	for i := range out.Moves {
		c.beginMove(ctx, in.Now, &out.Moves[i])
	}
	c.requeueLate(ctx, in, rules)
	pause := longestPause
	if !out.Next.IsZero() {
		pause = min(pause, max(out.Next.Sub(in.Now), shortestWait))
	}
	return pause
}

// handoverRules are the rules in force; nil: none speak of hand-over.
func (c *Controller) handoverRules(ctx context.Context) *account.Handover {
	p, err := c.cfg.Plane.Policy(ctx, 0)
	if err != nil || p.Rules == nil || len(p.Rules.Handover.Pools) == 0 {
		return nil
	}
	return &p.Rules.Handover
}

func (c *Controller) keepLast(d Decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = d
}

// actor is who asks.
func actor() job.Actor { return job.Actor{Name: Asker, From: "handover"} }

func (c *Controller) beginMove(ctx context.Context, now time.Time, m *demand.Move) {
	if err := c.cfg.Move(ctx, actor(), m, m.Until.Add(rest).Sub(now)); err != nil {
		c.cfg.Log.Warn("a machine was not handed over", "machine", m.Machine, "from", m.From, "to", m.To, "reason", m.Reason, "error", err)
		return
	}
	c.cfg.Log.Info("machine goes to another pool", "machine", m.Machine, "from", m.From, "to", m.To, "reason", m.Reason)
}

// requeueLate requeues the jobs that have not ended when the drain of their machine is over, where the
// rules of the pool allow it. What is not done, the next decision finds again.
func (c *Controller) requeueLate(ctx context.Context, in *demand.Input, rules *account.Handover) {
	on := map[string]*demand.Machine{}
	for i := range in.Machines {
		on[in.Machines[i].Name] = &in.Machines[i]
	}
	for _, o := range c.cfg.Plane.MachineOwners(ctx) {
		from, m := rules.Pool(o.Pool), on[o.Machine]
		late := o.By == Asker && o.Moving() && !o.Back && o.Step == fleet.StepAsked && !o.Deadline.IsZero() && !in.Now.Before(o.Deadline.Add(-rest))
		if !late || from == nil || !from.Requeue || m == nil {
			continue
		}
		var ids []job.ID
		for _, r := range m.Runs {
			if r.Requeue && r.Job != 0 {
				ids = append(ids, r.Job)
			}
		}
		if len(ids) == 0 {
			continue
		}
		refused, err := c.cfg.Plane.Change(ctx, actor(), ids, control.Requeue{})
		if err != nil {
			c.cfg.Log.Warn("jobs of a machine that is handed over were not requeued", "machine", o.Machine, "error", err)
			continue
		}
		for i, id := range ids {
			if i < len(refused) && refused[i] != nil {
				c.cfg.Log.Warn("a job of a machine that is handed over was not requeued", "machine", o.Machine, "job", id, "error", refused[i])
			}
		}
	}
}
