package local

import (
	"cmp"
	"os"
	"slices"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/fleet"
)

// part is one node of a gang. The upper fields belong to the gang's goroutine,
// the lower ones to the part's own, which follows the supervisor.
type part struct {
	gang  *gang
	index int
	node  fleet.Node
	pid   int
	state attempt.State
	dead  bool // its supervisor is no more, and nothing else lives either
	lost  bool // and it had not said so itself
	// ending is set when the supervisor was told to end.
	ending bool

	commands chan attempt.Command
	process  *os.Process // child of this process; nil: adopted
	identity attempt.Identity
}

// gone reports whether nothing of the part lives.
func (p *part) gone() bool { return p.dead || p.state.Gone && !p.state.Unsaved }

// why is what is worth saying of the part.
func (p *part) why() string {
	if p.lost {
		return cmp.Or(p.state.Text, "the supervisor on "+p.node.Name+" died")
	}
	return p.state.Text
}

// tell hands a command to the part's goroutine.
func (p *part) tell(c attempt.Command) {
	select {
	case p.commands <- c:
	default:
		p.gang.e.cfg.Log.Warn("a supervisor is too far behind to take a command", "attempt", p.gang.launch.Ref, "node", p.node.Name, "op", c.Op)
	}
}

// event runs f on the gang's goroutine.
func (p *part) event(f func()) {
	select {
	case p.gang.inbox <- f:
	case <-p.gang.done:
	case <-p.gang.e.ctx.Done():
	}
}

// apply folds a record in, on the gang's goroutine.
func (p *part) apply(r attempt.Record) {
	p.state.Apply(r)
	// A supervisor that was made ready before its server died still waits.
	if r.Kind == attempt.KindState && p.gang.marker == attempt.Go && p.state.Phase == engine.Ready {
		p.tell(attempt.Command{Op: attempt.OpGo, Time: p.gang.started})
	}
	if r.Kind == attempt.KindState && p.gang.marker == attempt.Abort && p.state.Phase < engine.Ending {
		p.tell(attempt.Command{Op: attempt.OpAbort, Cause: p.gang.cause, Text: p.gang.text})
	}
}

func sortTasks(ts []engine.TaskReport) {
	slices.SortStableFunc(ts, func(a, b engine.TaskReport) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Rank, b.Rank))
	})
}
