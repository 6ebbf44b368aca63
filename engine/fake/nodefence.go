package fake

import (
	"context"
	"errors"
	"slices"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

var _ engine.NodeFencer = (*Engine)(nil)

// nodeMarks is what stands on a node beside our attempts.
type nodeMarks struct {
	fence   *engine.NodeFence
	epoch   uint64 // the last one of which a call was heard
	drained string // an administrator's
	silent  bool
	foreign []engine.NodeWork
}

// Late makes an error, for Config.Fault to return as the first one, of a call that is on its way: its
// caller gets err, and it acts when World.Arrive is called.
func Late(err error) error { return &late{err} }

type late struct{ err error }

func (l *late) Error() string { return "late: " + l.err.Error() }

// Arrive lets the calls arrive that are late, in their order. Nobody hears their answers, which are returned.
func (w *World) Arrive() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, do := range w.late {
		errs = append(errs, do())
	}
	w.late = nil
	return errors.Join(errs...)
}

// Fence closes a node.
func (e *Engine) Fence(ctx context.Context, node string, f engine.NodeFence) error {
	return e.runCall(ctx, Call{Name: "fence", Node: node}, func() error {
		m, err := e.w.markedBy(node, f)
		if err == nil {
			m.fence = &f
		}
		return err
	})
}

// Unfence removes our fence.
func (e *Engine) Unfence(ctx context.Context, node string, f engine.NodeFence) error {
	return e.runCall(ctx, Call{Name: "unfence", Node: node}, func() error {
		m, err := e.w.markedBy(node, f)
		if err == nil {
			m.fence = nil
		}
		return err
	})
}

// markedBy returns the marks of a node for a call of an epoch.
func (w *World) markedBy(node string, f engine.NodeFence) (*nodeMarks, error) {
	m, err := w.marksOf(node)
	if err != nil {
		return nil, err
	}
	if err := f.Follows(node, m.epoch); err != nil && !planted.OldUnfence {
		return nil, err
	}
	m.epoch = f.Epoch
	return m, nil
}

// marksOf returns the marks of a node of the pool.
func (w *World) marksOf(node string) (*nodeMarks, error) {
	if !slices.ContainsFunc(w.cfg.Nodes, func(n fleet.Node) bool { return n.Name == node }) {
		return nil, fault.New(fault.NotFound, "the fake engine has no node %q", node)
	}
	if w.marks[node] == nil {
		w.marks[node] = &nodeMarks{}
	}
	return w.marks[node], nil
}

func (w *World) fenceOf(node string) *engine.NodeFence {
	if m := w.marks[node]; m != nil {
		return m.fence
	}
	return nil
}

// Empty says what is on a node: attempts that have not ended, and work of others.
func (e *Engine) Empty(ctx context.Context, node string) (c engine.NodeContents, err error) {
	err = e.runCall(ctx, Call{Name: "empty", Node: node}, func() error {
		m, err := e.w.marksOf(node)
		if err != nil {
			return err
		}
		c = engine.NodeContents{At: e.w.cfg.Now(), Drained: m.drained, Work: slices.Clone(m.foreign), Looked: []string{"allocations", "processes"}}
		if m.fence != nil {
			f := *m.fence
			c.Fence = &f
		}
		if m.silent {
			c.Unknown = append(c.Unknown, "no word from "+node)
		}
		for _, a := range e.w.sortedAttempts() {
			if a.runsOn(node) && a.report.Phase != engine.Ended {
				c.Work = append(c.Work, engine.NodeWork{Kind: "allocation", Name: a.launch.Ref.String(), Owner: a.launch.Job.Spec.Owner.User, Ours: true})
			}
		}
		return nil
	})
	return c, err
}

// markedNodes is the pool as Nodes tells it. A node that nobody hears of is not told as such: Config.Nodes
// says what state it is in.
func (w *World) markedNodes() []fleet.Node {
	nodes := slices.Clone(w.cfg.Nodes)
	for i := range nodes {
		n, m := &nodes[i], w.marks[nodes[i].Name]
		if m == nil {
			continue
		}
		if m.fence != nil {
			n.Fence = m.fence.Epoch
		}
		if n.State != fleet.Up {
			continue
		}
		if m.drained != "" || m.fence != nil {
			n.State, n.Why = fleet.Draining, m.drained
		}
	}
	return nodes
}

// Drain sets an administrator's mark on a node of the pool; an empty reason removes it.
func (w *World) Drain(node, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, err := w.marksOf(node); err == nil {
		m.drained = why
	}
}

// StartForeign starts work of somebody else on a node of the pool, past us. A fenced or drained node takes none
// (fault.Conflict), unless the work asks for no leave, as a pod does that tolerates everything.
func (w *World) StartForeign(node string, work engine.NodeWork, unasked bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.marksOf(node)
	if err != nil {
		return err
	}
	if !unasked && (m.fence != nil || m.drained != "") {
		return fault.New(fault.Conflict, "node %s takes no work", node)
	}
	m.foreign = append(m.foreign, work)
	return nil
}

// EndForeign ends the work of a name that StartForeign started.
func (w *World) EndForeign(node, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, err := w.marksOf(node); err == nil {
		m.foreign = slices.DeleteFunc(m.foreign, func(x engine.NodeWork) bool { return x.Name == name })
	}
}

// FenceOf returns the fence that stands on a node; false: there is none.
func (w *World) FenceOf(node string) (engine.NodeFence, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.fenceOf(node); f != nil {
		return *f, true
	}
	return engine.NodeFence{}, false
}
