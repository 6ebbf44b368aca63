package local

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/step"
)

// gang is one attempt: all its nodes. Only the goroutine in run touches it, but
// for launch, inbox and done.
type gang struct {
	e      *Engine
	dir    attempt.Dir
	launch *attempt.Launch
	inbox  chan func()
	done   chan struct{} // closed when it has ended

	parts   []*part
	marker  attempt.Marker
	started time.Time // when the barrier was opened
	phase   engine.Phase
	cause   engine.Cause // as decided here; empty: the head's
	text    string
	asked   *engine.Stop // the first Stop
	ended   bool         // everything is gone
	late    *time.Timer
}

func (e *Engine) newGang(dir attempt.Dir, l *attempt.Launch) *gang {
	g := &gang{
		e: e, dir: dir, launch: l, inbox: make(chan func()), done: make(chan struct{}),
		phase: engine.Accepted, late: time.NewTimer(e.cfg.Ready),
	}
	for i := range l.Nodes {
		g.parts = append(g.parts, &part{gang: g, index: i, node: l.Nodes[i], commands: make(chan attempt.Command, 64)})
	}
	return g
}

// run follows the attempt until it has ended or the engine is closed.
func (g *gang) run() {
	start := g.marker == attempt.Pending
	for _, p := range g.parts {
		g.e.wg.Go(func() { p.follow(start) })
	}
	for !g.ended {
		select {
		case do := <-g.inbox:
			do()
			g.drain()
		case <-g.late.C:
			g.tooLate()
		case <-g.e.ctx.Done():
			return
		}
		g.advance()
		g.publish()
	}
	g.finish()
}

// drain handles what else is there, so that one report tells of many changes.
func (g *gang) drain() {
	for range 256 {
		select {
		case do := <-g.inbox:
			do()
		default:
			return
		}
	}
}

// advance decides what follows from the state of the parts.
func (g *gang) advance() {
	if g.marker == attempt.Pending {
		if p := g.failed(); p != nil {
			g.abandon(p.why())
		} else if g.all(func(p *part) bool { return p.state.Phase == engine.Ready }) {
			g.open()
		}
	}
	if g.marker == attempt.Go {
		g.follow()
	}
	g.ended = g.all(func(p *part) bool { return p.gone() })
}

func (g *gang) all(f func(*part) bool) bool {
	for _, p := range g.parts {
		if !f(p) {
			return false
		}
	}
	return true
}

// failed returns a part that will never be ready.
func (g *gang) failed() *part {
	for _, p := range g.parts {
		if p.state.Refused || p.dead || p.state.Phase >= engine.Ending {
			return p
		}
	}
	return nil
}

// open opens the barrier: what processes inside may know is written, the decision
// is taken on disk, every supervisor is told.
func (g *gang) open() {
	g.phase = engine.Ready
	g.publish()
	g.started = time.Now().Round(0)
	if err := g.writeAlloc(); err != nil {
		g.started = time.Time{}
		g.abandon(err.Error())
		return
	}
	m, err := g.dir.Decide(attempt.Go)
	if err != nil || m != attempt.Go {
		g.started = time.Time{}
		g.abandon(fmt.Sprintf("the start could not be recorded: %v", err))
		return
	}
	g.marker = m
	g.phase = engine.Running
	g.late.Stop()
	g.tell(attempt.Command{Op: attempt.OpGo, Time: g.started})
}

func (g *gang) writeAlloc() error {
	j := *g.launch.Job
	j.Attempt = g.launch.Ref.Attempt
	a, err := step.NewAlloc(&j, g.launch.Claims, g.launch.Nodes, step.Place{
		Dir: string(g.dir), Bin: g.e.bin(), Socket: g.launch.StepSocket,
	}, g.started)
	if err != nil {
		return err
	}
	return a.Save()
}

// follow keeps the parts together once the barrier is open: when one is lost, or
// the head has ended, the others end.
func (g *gang) follow() {
	head := g.parts[0]
	for _, p := range g.parts {
		if p.lost && g.cause == "" && head.state.Cause == "" {
			g.cause, g.text = engine.NodeLost, p.why()
			if g.asked != nil {
				g.cause = engine.Stopped
			}
			g.endOthers(attempt.Command{Op: attempt.OpStop, Grace: g.launch.Grace, Cause: engine.NodeLost, Text: p.why()})
			return
		}
	}
	if head.state.Phase >= engine.Ending || head.dead {
		g.endOthers(attempt.Command{Op: attempt.OpStop, Grace: g.launch.Grace, Cause: cmp.Or(head.state.Cause, engine.NodeLost)})
	}
}

// endOthers tells every part that is not being ended yet.
func (g *gang) endOthers(c attempt.Command) {
	for _, p := range g.parts {
		if p.state.Phase < engine.Ending && !p.ending && !p.dead {
			p.ending = true
			p.tell(c)
		}
	}
}

func (g *gang) tell(c attempt.Command) {
	for _, p := range g.parts {
		p.tell(c)
	}
}

// abandon undoes a launch whose barrier was not opened.
func (g *gang) abandon(text string) {
	w := why{cmp.Or(g.cause, engine.LaunchFailed), cmp.Or(g.text, text)}
	if err := attempt.WriteJSON(g.dir.File(whyFile), w); err != nil {
		g.e.cfg.Log.Warn("record why a launch is given up", "attempt", g.launch.Ref, "err", err)
	}
	m, err := g.dir.Decide(attempt.Abort)
	if err != nil {
		g.e.cfg.Log.Error("record that a launch is given up", "attempt", g.launch.Ref, "err", err)
		m = attempt.Abort
	}
	if m == attempt.Go {
		return // somebody decided before
	}
	g.marker = m
	g.late.Stop()
	g.phase = max(g.phase, engine.Ending)
	g.cause, g.text = w.Cause, w.Text
	g.tell(attempt.Command{Op: attempt.OpAbort, Cause: g.cause, Text: g.text})
}

// why is why a launch was given up, in whyFile.
type why struct {
	Cause engine.Cause `json:"cause"`
	Text  string       `json:"text"`
}

const whyFile = "why.json"

func (g *gang) tooLate() {
	if g.marker != attempt.Pending {
		return
	}
	var slow []string
	for _, p := range g.parts {
		if p.state.Phase < engine.Ready {
			slow = append(slow, p.node.Name)
		}
	}
	g.abandon(fmt.Sprintf("%s not ready in %s", strings.Join(slow, ", "), g.e.cfg.Ready))
}

// stop is engine.Stop for this attempt.
func (g *gang) stop(s engine.Stop) {
	if g.asked == nil {
		g.asked = &s
	}
	if g.marker == attempt.Pending {
		g.cause, g.text = engine.Stopped, s.Reason
		g.abandon(s.Reason)
		return
	}
	g.tell(attempt.Command{Op: attempt.OpStop, Signal: s.Signal, Grace: s.Grace, Cause: engine.Stopped, Text: s.Reason})
}

func (g *gang) signal(n int, to engine.Scope) error {
	if g.marker != attempt.Go {
		return fault.New(fault.Conflict, "attempt %s has not started", g.launch.Ref)
	}
	for i, p := range g.parts {
		if to != engine.ToBatch || i == 0 {
			p.tell(attempt.Command{Op: attempt.OpSignal, Signal: n, Scope: to})
		}
	}
	return nil
}

// finish puts the last report on record and says that the gang has ended.
func (g *gang) finish() {
	r, _ := g.e.feed.Last(g.launch.Ref)
	if err := attempt.WriteJSON(g.dir.File("report.json"), r); err != nil {
		g.e.cfg.Log.Warn("write the last report", "attempt", g.launch.Ref, "err", err) // the journals say the same
	}
	_ = os.RemoveAll(g.launch.Sockets)
	close(g.done)
}

// publish makes the present state an event if it differs from the last one.
func (g *gang) publish() {
	r := g.report()
	if last, ok := g.e.feed.Last(r.Ref); ok {
		last.Version = 0
		if same(last, r) {
			return
		}
	}
	g.e.feed.Publish(r)
}

// report is the state of the attempt from that of its parts.
func (g *gang) report() engine.Report {
	head := g.parts[0].state
	r := engine.Report{
		Ref: g.launch.Ref, Job: g.launch.Job.ID, Started: g.started,
		Cause: cmp.Or(g.cause, head.Cause), Message: cmp.Or(g.text, head.Text), Files: head.Files,
	}
	ending := false
	for _, p := range g.parts {
		phase := max(p.state.Phase, engine.Accepted)
		ending = ending || phase >= engine.Ending || p.lost
		r.Nodes = append(r.Nodes, engine.NodeReport{Node: p.node.Name, Phase: phase, Message: p.why(), PID: p.pid})
		r.Tasks = append(r.Tasks, p.state.Tasks...)
		r.Uncertain = r.Uncertain || p.state.Unsaved
	}
	sortTasks(r.Tasks)
	switch {
	case g.ended && !r.Uncertain:
		g.phase = engine.Ended
	case ending:
		g.phase = max(g.phase, engine.Ending)
	}
	r.Phase = g.phase
	r.Gone = r.Phase == engine.Ended
	if r.Phase >= engine.Ending {
		g.outcome(&r)
	}
	return r
}

// outcome fills in how the attempt ended, as far as that is known.
func (g *gang) outcome(r *engine.Report) {
	head := g.parts[0].state
	switch {
	case head.Exit != nil:
		r.Exit = *head.Exit
	case g.ended && r.Cause != engine.Stopped:
		r.Exit = job.ExitCode{Status: 1} // never a success: nobody saw it end
	case g.ended:
		r.Exit = job.ExitCode{Signal: 15}
	}
	if r.Cause == engine.Exited && !r.Exit.OK() {
		for _, t := range r.Tasks {
			if t.Cause == engine.OutOfMemory {
				r.Cause = engine.OutOfMemory
				r.Message = cmp.Or(r.Message, g.partOf(t.Node).state.Text)
			}
		}
	}
	for _, p := range g.parts {
		if g.ended && p.state.Ended.After(r.Ended) {
			r.Ended = p.state.Ended
		}
	}
	if g.ended && r.Ended.IsZero() {
		r.Ended = time.Now().Round(0)
	}
}

func (g *gang) partOf(node string) *part {
	for _, p := range g.parts {
		if p.node.Name == node {
			return p
		}
	}
	return g.parts[0]
}
