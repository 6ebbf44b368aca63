package local

import (
	"cmp"
	"encoding/json"
	"os"
	"reflect"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
)

// adoptAttempts takes over every attempt of the log: ended ones are known again by their
// last report, others are followed from where they are.
func (e *Engine) adoptAttempts(lives map[engine.Ref]*attempt.Life) {
	used := map[string]bool{}
	for ref, life := range lives {
		for _, s := range life.Seats {
			used[s.Name] = used[s.Name] || life.End == nil
		}
		e.adoptOne(ref, life)
	}
	e.sweepSlots(used)
}

func (e *Engine) adoptOne(ref engine.Ref, life *attempt.Life) {
	if life.End != nil {
		g := &gang{e: e, launch: &attempt.Launch{Ref: ref, Digest: life.Digest}, ended: true, inbox: make(chan func()), done: make(chan struct{})}
		close(g.done)
		e.gangs[ref] = g
		e.feed.Publish(*life.End)
		return
	}
	whole, err := json.Marshal(life.Launch)
	if err != nil {
		panic("launch: " + err.Error()) // it was read as JSON
	}
	g := e.newGang(life.Launch, whole)
	e.gangs[ref] = g
	g.restoreGang(life)
	g.publishState()
	e.wg.Go(g.runGang)
}

// restoreGang puts an adopted gang where it was: phases do not shrink over a restart.
func (g *gang) restoreGang(life *attempt.Life) {
	g.decided = life.Decided
	for i, p := range g.parts {
		p.at = life.Seats[i]
		p.home = p.at
		if err := p.restorePart(); err != nil {
			g.e.cfg.Log.Error("read a journal", "attempt", g.launch.Ref, "node", p.node.Name, "err", err)
		}
	}
	switch g.decided {
	case attempt.EntryAbort:
		g.cause, g.text, g.phase = life.Cause, life.Text, engine.Ending
	case attempt.EntryGo:
		g.phase, g.started = engine.Running, life.Started
		g.whole.Store(nil)
	}
	g.advanceGang()
}

// restorePart reads the journal of a part and looks whether its supervisor lives: in
// the other order, since what a dead one wrote is all that it had to say.
func (p *nodeAttempt) restorePart() error {
	if p.at.Name == "" {
		return nil
	}
	alive := (&supervisorSlot{Slot: p.at}).isAlive(p.gang.e.boot)
	state, _, err := attempt.ReadJournal(p.at.Journal(), p.gang.launch.Ref)
	if err != nil {
		return err
	}
	p.state = *state
	if p.gang.decided == attempt.EntryGo && !alive && !p.state.Gone {
		p.lost, p.open, p.fell = true, true, p.state.Phase < engine.Ending
		p.state.Text = cmp.Or(p.state.Text, p.supervisorDeathText())
	}
	return nil
}

// sweepSlots removes the seats and control groups of supervisors that had no attempt
// when the engine before this one ended: they have ended too.
func (e *Engine) sweepSlots(used map[string]bool) {
	entries, err := os.ReadDir(attempt.SlotsOf(e.cfg.Root))
	if err != nil {
		e.cfg.Log.Warn("look for old seats", "err", err)
	}
	for _, d := range entries {
		if s := attempt.SlotOf(e.cfg.Root, d.Name()); !used[s.Name] && epochOf(s.Name) != e.epoch {
			if err := s.Remove(); err != nil {
				e.cfg.Log.Warn("remove a seat", "seat", s.Name, "err", err)
			}
		}
	}
	prefix := attempt.GroupPrefix(e.cfg.Root)
	for _, name := range e.base.Names(prefix) {
		if s := strings.TrimPrefix(name, prefix); !used[s] && epochOf(s) != e.epoch {
			_ = e.base.Group(name).Remove() // one that is still in use is swept another time
		}
	}
}

// sameReport reports whether two reports differ in nothing.
func sameReport(a, b engine.Report) bool { return reflect.DeepEqual(a, b) }
