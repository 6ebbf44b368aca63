package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/service/handover/decide"
)

// decideMachine decides what comes next of a machine, and has it done.
func (c *Controller) decideMachine(ctx context.Context, m *managed) {
	out := decide.Decide(c.inputOf(m))
	now := c.cfg.Now()
	m.due = now.Add(longestPause)
	if !out.Next.IsZero() && out.Next.Before(m.due) {
		m.due = out.Next
	}
	switch {
	case len(out.Requeue) > 0 && !now.Before(m.requeue):
		m.requeue = now.Add(requeueAgain)
		c.requeueJobs(ctx, m, out.Requeue)
	case out.Record != nil:
		c.writeRecord(ctx, m, *out.Record)
	case out.Call != nil:
		c.callEngine(ctx, m, *out.Call)
	case m.Owner.Moving() && causeOf(out.Waits) != causeOf(m.Owner.Waits) && now.Sub(m.waitsAt) >= waitsAgain:
		next := m.Owner
		next.Waits = out.Waits
		m.waitsAt = now
		c.writeRecord(ctx, m, next)
	}
}

// causeOf is what a step waits for without the durations in it, which grow as long as it waits: "silent for 1m20s".
func causeOf(waits string) string {
	words := strings.Fields(waits)
	for i, w := range words {
		words[i] = strings.Trim(w, "(),;:.")
	}
	for i, w := range words {
		_, err := time.ParseDuration(w)
		if err == nil || i+1 < len(words) && slices.Contains(units, words[i+1]) && strings.Trim(w, "0123456789.") == "" {
			words[i] = "…"
		}
	}
	return strings.Join(words, " ")
}

// units are those of durations that are written as two words: "50 s".
var units = []string{"ms", "s", "second", "seconds", "min", "minute", "minutes", "h", "hour", "hours", "day", "days"}

// doFor does something for a machine in a goroutine of its own; then runs in that of Run.
func (c *Controller) doFor(ctx context.Context, m *managed, do func(context.Context), then func()) {
	m.busy = true
	c.tasks.Go(func() {
		do(ctx)
		select {
		case c.done <- func() { m.busy = false; then() }:
		case <-ctx.Done():
		}
	})
}

// writeRecord makes a record durable.
func (c *Controller) writeRecord(ctx context.Context, m *managed, next fleet.MachineOwner) {
	var err error
	c.doFor(ctx, m, func(ctx context.Context) { err = c.cfg.Plane.MoveMachine(ctx, actorOf(&next), next) }, func() {
		switch {
		case err == nil:
			m.due, c.stale = time.Time{}, true
			if next.Step != m.Owner.Step || next.Back != m.Owner.Back {
				c.cfg.Log.Info("hand-over", "machine", next.Machine, "from", fromPool(&next), "pool", next.Pool, "to", next.Next, "step", next.Step, "back", next.Back, "epoch", next.Epoch, "evidence", next.Evidence)
			}
		case fault.KindOf(err) == fault.Conflict: // somebody else has changed it
			m.holdFor(c.cfg.Now(), writeAgain)
			c.stale = true
		default:
			if m.trouble != err.Error() {
				c.cfg.Log.Warn("a step of a hand-over cannot be written; trying again", "machine", next.Machine, "step", next.Step, "error", err)
			}
			m.trouble = err.Error()
			m.holdFor(c.cfg.Now(), writeAgain)
		}
	})
}

func fromPool(o *fleet.MachineOwner) string {
	if o.Last != "" {
		return o.Last
	}
	return o.Pool
}

// requeueJobs requeues what holds a machine. What cannot be requeued is asked again later.
func (c *Controller) requeueJobs(ctx context.Context, m *managed, ids []job.ID) {
	by := actorOf(&m.Owner)
	var errs []error
	c.doFor(ctx, m, func(ctx context.Context) {
		list, err := c.cfg.Plane.Requeue(ctx, by, ids)
		errs = append(list, err)
	}, func() {
		for _, err := range errs {
			if err != nil && fault.KindOf(err) != fault.NotFound && fault.KindOf(err) != fault.Conflict {
				c.cfg.Log.Warn("a job could not be requeued for a hand-over; trying again", "machine", m.Owner.Machine, "error", err)
			}
		}
		m.due, c.stale = time.Time{}, true
	})
}

// callEngine calls an engine, and notes its answer.
func (c *Controller) callEngine(ctx context.Context, m *managed, call decide.Call) {
	if c.calls[call.Pool] >= mostCalls {
		m.holdFor(c.cfg.Now(), shortPause/10)
		return
	}
	c.calls[call.Pool]++
	e := c.cfg.Plane.Engine(call.Pool)
	asked := c.cfg.Now()
	var nodes []*decide.Node // that the call is about
	var names []string
	for i := range m.Nodes {
		if k := m.Nodes[i].NodeKey; k.Pool == call.Pool && (k.Name == call.Node || call.Verb == decide.List) {
			nodes, names = append(nodes, m.nodes[k]), append(names, k.Name)
		}
	}
	if call.Verb == decide.Fence || call.Verb == decide.Unfence {
		for _, n := range nodes {
			n.Contents, n.Listed, n.Checked, n.Mark = nil, nil, nil, decide.Mark{}
		}
	}
	var a answer
	c.doFor(ctx, m, func(ctx context.Context) {
		if call.Verb == decide.Check {
			a.results, a.err = c.checkNode(ctx, fleet.NodeKey{Pool: call.Pool, Name: call.Node})
			return
		}
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		a = callOnce(ctx, e, call)
		if a.changesNodes(call.Verb, names) {
			_ = c.cfg.Plane.LookAt(ctx, call.Pool) // else it is seen half a minute later
		}
	}, func() {
		c.calls[call.Pool]--
		now := c.cfg.Now()
		for _, n := range nodes {
			noteAnswer(n, &call, &a, asked, now)
		}
		m.due = time.Time{}
		if a.err != nil {
			c.cfg.Log.Warn("hand-over: an engine refused a call, or did not answer", "machine", m.Owner.Machine, "call", call.Verb, "pool", call.Pool, "node", call.Node, "error", a.err)
		}
	})
}

// answer is what an engine said.
type answer struct {
	contents engine.NodeContents
	nodes    []fleet.Node
	results  []fleet.CheckResult
	err      error
}

// changesNodes reports whether the answer to a call about some nodes says that they are not as they were: a
// fence is set or removed, or one that was waited for is up.
func (a *answer) changesNodes(verb decide.Verb, names []string) bool {
	switch {
	case a.err != nil:
		return false
	case verb == decide.List:
		return slices.ContainsFunc(a.nodes, func(n fleet.Node) bool { return slices.Contains(names, n.Name) && n.State == fleet.Up })
	}
	return verb == decide.Fence || verb == decide.Unfence
}

// callOnce calls an engine.
func callOnce(ctx context.Context, e engine.Engine, call decide.Call) (a answer) {
	if e == nil {
		return answer{err: errNoEngine}
	}
	if call.Verb == decide.List {
		a.nodes, a.err = e.Nodes(ctx)
		return a
	}
	f, ok := e.(engine.NodeFencer)
	if !ok {
		return answer{err: fault.New(fault.Unsupported, "the engine of pool %s cannot fence nodes", call.Pool)}
	}
	switch call.Verb {
	case decide.Fence:
		a.err = f.Fence(ctx, call.Node, call.Mark)
	case decide.Unfence:
		a.err = f.Unfence(ctx, call.Node, call.Mark)
	default:
		a.contents, a.err = f.Empty(ctx, call.Node)
	}
	return a
}

// noteAnswer notes what an engine said of a node.
func noteAnswer(n *decide.Node, call *decide.Call, a *answer, asked, now time.Time) {
	n.Trouble, n.Tried = "", now
	if call.Verb == decide.Check {
		noteChecked(n, call.Pool, a, asked)
		return
	}
	switch {
	case a.err != nil:
		n.Trouble = refusalText(a.err)
	case call.Verb == decide.Fence, call.Verb == decide.Unfence:
		n.Mark = decide.Mark{Epoch: call.Mark.Epoch, Fenced: call.Verb == decide.Fence, At: now}
	case call.Verb == decide.Empty:
		contents := a.contents
		n.Contents, n.Asked = &contents, asked
	default:
		l := decide.Listed{At: now}
		for i := range a.nodes {
			if a.nodes[i].Name == n.Name {
				l.State, l.Why = a.nodes[i].State, a.nodes[i].Why
			}
		}
		n.Listed = &l
	}
}

// refusalText is an error with what to do about it.
func refusalText(err error) string {
	if remedy := fault.Remedy(err); remedy != "" {
		return err.Error() + " (" + remedy + ")"
	}
	return err.Error()
}
