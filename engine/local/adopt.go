package local

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/step"
)

func (e *Engine) bin() string { return filepath.Dir(e.cox()) }

// adopt takes over every attempt on disk: ended ones are known again by their
// last report, others are followed from where they are.
func (e *Engine) adopt() error {
	entries, err := os.ReadDir(filepath.Join(e.cfg.Root, "a"))
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		name := filepath.Join(e.cfg.Root, "a", entry.Name())
		ref, err := attempt.ParseRef(entry.Name())
		if err != nil {
			if strings.HasPrefix(entry.Name(), "-") { // never put in place, or forgotten
				err = os.RemoveAll(name)
			}
			if err != nil {
				e.cfg.Log.Warn("adopt", "dir", name, "err", err)
			}
			continue
		}
		if m, err := attempt.Dir(name).Marker(); err == nil && m == attempt.Forgot {
			if err := attempt.Dir(name).Forget(); err != nil {
				e.cfg.Log.Warn("remove a forgotten attempt", "dir", name, "err", err)
			}
			continue
		}
		errs = append(errs, e.adoptOne(attempt.Dir(name), ref))
	}
	return errors.Join(errs...)
}

func (e *Engine) adoptOne(dir attempt.Dir, ref engine.Ref) error {
	l, err := dir.ReadLaunch()
	if err != nil {
		return err
	}
	g := e.newGang(dir, l)
	e.gangs[ref] = g
	var last engine.Report
	if err := attempt.ReadJSON(dir.File("report.json"), &last); err == nil && last.Phase == engine.Ended {
		g.ended = true
		close(g.done)
		e.feed.Publish(last)
		return nil
	}
	m, err := dir.Marker()
	if err != nil {
		return err
	}
	g.recall(m)
	g.publish()
	e.wg.Go(g.run)
	return nil
}

// recall puts an adopted gang where it was, from what is on disk: phases do not
// shrink over a restart.
func (g *gang) recall(m attempt.Marker) {
	g.marker = m
	for _, p := range g.parts {
		if err := p.recall(); err != nil {
			g.e.cfg.Log.Error("read a journal", "attempt", g.launch.Ref, "node", p.node.Name, "err", err)
		}
	}
	switch m {
	case attempt.Abort:
		var w why
		if err := attempt.ReadJSON(g.dir.File(whyFile), &w); err != nil {
			w = why{engine.LaunchFailed, "the launch was given up"}
		}
		g.cause, g.text, g.phase = w.Cause, w.Text, engine.Ending
	case attempt.Go:
		g.phase = engine.Running
		if a, err := step.Load(g.dir.Alloc()); err == nil {
			g.started = a.Started
		} else {
			g.e.cfg.Log.Error("read what an attempt holds", "attempt", g.launch.Ref, "err", err)
		}
	}
	g.advance()
}

// recall reads the journal of a part and looks whether its supervisor lives: in
// the other order, since what a dead one wrote is all that it had to say.
func (p *part) recall() error {
	p.identity = p.readIdentity()
	p.pid = p.identity.PID
	alive := p.alive()
	state, err := attempt.ReadJournal(filepath.Join(p.gang.dir.Node(p.node.Name), "journal"))
	if err != nil {
		return err
	}
	p.state = *state
	if p.gang.marker == attempt.Go && !alive && !p.state.Gone {
		p.lost = true
		p.state.Text = cmp.Or(p.state.Text, p.epitaph())
	}
	return nil
}

// same reports whether two reports differ in nothing.
func same(a, b engine.Report) bool { return reflect.DeepEqual(a, b) }
