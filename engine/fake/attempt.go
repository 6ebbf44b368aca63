package fake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Exit is how an attempt ends by itself: by an exit code, at its memory limit.
type Exit struct {
	Code job.ExitCode
	OOM  bool
}

// Signals of the operating systems that matter here.
const (
	sigkill = 9
	sigterm = 15
)

// attempt is one attempt and what will happen to it.
type attempt struct {
	launch  *engine.Launch
	outcome Outcome
	report  engine.Report
	nodes   []string
	signals []int
	roster  *engine.Roster // nil: it was told none

	next   []happening // by time, then by the order in which they were planned
	still  []happening // what waits while it is suspended
	since  time.Time   // when it was suspended
	killed bool
	drains bool // it is to end, and its requests have time to
	quiet  bool // no word comes from it any more
	freed  bool // by World.Release

	planned chan<- struct{} // World.planned

	away  []string // nodes from which no word comes; see World.Silence
	asked []func() // meanwhile
}

// happening is a change at a time. It is dropped if the attempt has ended before.
type happening struct {
	at  time.Time
	do  func(at time.Time)
	tag string
}

// planEvent makes something happen later, or takes it off the plan with Never.
func (a *attempt) planEvent(tag string, at time.Time, do func(at time.Time)) {
	a.next = append(a.next, happening{at, do, tag})
	slices.SortStableFunc(a.next, func(x, y happening) int { return x.at.Compare(y.at) })
	select {
	case a.planned <- struct{}{}:
	default: // World.Run looks at the plan anyway
	}
}

func (a *attempt) cancelEvents(tags ...string) {
	a.next = slices.DeleteFunc(a.next, func(h happening) bool { return slices.Contains(tags, h.tag) })
}

// sortedAttempts lists the attempts by their number.
func (w *World) sortedAttempts() []*attempt {
	all := make([]*attempt, 0, len(w.attempts))
	for _, a := range w.attempts {
		all = append(all, a)
	}
	slices.SortFunc(all, byRef)
	return all
}

func byRef(x, y *attempt) int {
	return cmp.Or(cmp.Compare(x.launch.Ref.Allocation, y.launch.Ref.Allocation), cmp.Compare(x.launch.Ref.Attempt, y.launch.Ref.Attempt))
}

// Next returns when something happens next, false if nothing will by itself.
func (w *World) Next() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.nextAttempt()
	if a == nil {
		return time.Time{}, false
	}
	return a.next[0].at, true
}

// nextAttempt returns the attempt to which something happens first; at the same moment, the
// one with the lowest number.
func (w *World) nextAttempt() *attempt {
	var first *attempt
	for _, a := range w.attempts {
		if len(a.next) > 0 && (first == nil || cmp.Or(a.next[0].at.Compare(first.next[0].at), byRef(a, first)) < 0) {
			first = a
		}
	}
	return first
}

// Advance lets everything happen that is due by now, in the order of time. It is
// the only thing that makes time pass in the world.
func (w *World) Advance() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.cfg.Now()
	for {
		a := w.nextAttempt()
		if a == nil || a.next[0].at.After(now) {
			return
		}
		h := a.next[0]
		a.next = a.next[1:]
		h.do(h.at)
	}
}

// Run lets time pass by the machine's clock until ctx ends: everything happens when it is due. It
// is for a world whose Config.Now is time.Now, and instead of calls of Advance.
func (w *World) Run(ctx context.Context) {
	for {
		w.Advance()
		var due <-chan time.Time
		if at, ok := w.Next(); ok {
			due = time.After(time.Until(at))
		}
		select {
		case <-w.planned:
		case <-due:
		case <-ctx.Done():
			return
		}
	}
}

// Release lets an attempt that nothing ends, or whose word is awaited, end.
func (w *World) Release(ref engine.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.attempts[ref]
	if a == nil {
		return
	}
	a.freed = true
	if a.quiet || a.killed {
		a.quiet = false
		a.report.Cause = cmp.Or(a.report.Cause, engine.NodeLost)
		w.endAttempt(a, w.cfg.Now(), job.ExitCode{Signal: sigkill})
	}
}

// Kill lets a node's supervisor die: the attempt ends there, proved, and the rest
// of the gang is ended.
func (w *World) Kill(ref engine.Ref, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.attempts[ref]; a != nil {
		w.loseNode(a, node, w.cfg.Now())
	}
}

// Signals returns the signals that an attempt was sent by Engine.Signal.
func (w *World) Signals(ref engine.Ref) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.attempts[ref]; a != nil {
		return slices.Clone(a.signals)
	}
	return nil
}

// publishReport publishes what is known of the attempt, unless nothing can be known.
func (w *World) publishReport(a *attempt) {
	phase := a.report.Phase
	for i := range a.report.Nodes {
		a.report.Nodes[i].Phase = phase
	}
	if w.cfg.Truth != nil {
		w.cfg.Truth(a.toldReport())
	}
	w.publishEndpoints(a)
	if w.feed != nil && !a.quiet && len(a.away) == 0 {
		w.feed.Publish(a.toldReport())
	}
}

// beginLaunch takes a launch and plans what comes of it.
func (w *World) beginLaunch(l *engine.Launch) {
	now := w.cfg.Now()
	a := &attempt{launch: l, outcome: w.cfg.Script(l), planned: w.planned}
	a.report = engine.Report{Ref: l.Ref, Job: l.Job.ID, Phase: engine.Accepted}
	for _, c := range l.Claims {
		if !slices.Contains(a.nodes, c.Node) {
			a.nodes = append(a.nodes, c.Node)
			a.report.Nodes = append(a.report.Nodes, engine.NodeReport{Node: c.Node})
		}
	}
	w.attempts[l.Ref] = a
	w.publishReport(a)
	at := now.Add(max(a.outcome.Ready, 0))
	if a.outcome.FailNode != "" {
		a.planEvent("ready", at, func(at time.Time) { w.failLaunch(a, at) })
		return
	}
	if a.outcome.Ready != Never {
		a.planEvent("ready", at, func(at time.Time) { w.openBarrier(a, at) })
	}
}

// failLaunch undoes a launch.
func (w *World) failLaunch(a *attempt, at time.Time) {
	a.report.Cause = engine.LaunchFailed
	a.report.Message = fmt.Sprintf("%s: %s", a.outcome.FailNode, cmp.Or(a.outcome.FailText, "it could not be made ready"))
	if planted.RestOfGang {
		w.publishReport(a)
		w.openBarrier(a, at)
		return
	}
	if a.outcome.Undo <= 0 {
		w.endAttempt(a, at, job.ExitCode{Status: 1})
		return
	}
	a.report.Phase = engine.Ending
	w.publishReport(a)
	a.planEvent("undo", at.Add(a.outcome.Undo), func(at time.Time) { w.endAttempt(a, at, job.ExitCode{Status: 1}) })
}

// openBarrier opens the barrier.
func (w *World) openBarrier(a *attempt, at time.Time) {
	a.report.Phase = engine.Ready
	w.publishReport(a)
	a.report.Phase, a.report.Started = engine.Running, at
	a.report.Tasks = []engine.TaskReport{{Step: engine.BatchStep, Node: a.nodes[0], Running: true, PID: 1, Started: at}}
	w.publishReport(a)
	o := a.outcome
	if o.Run != Never {
		a.planEvent("run", at.Add(o.Run), func(at time.Time) {
			a.report.Cause = engine.Exited
			if o.Exit.OOM {
				a.report.Cause = engine.OutOfMemory
			}
			w.endAttempt(a, at, o.Exit.Code)
		})
	}
	if spec := a.launch.Job.Spec; spec.TimeLimit > 0 {
		a.planEvent("limit", at.Add(spec.TimeLimit), func(at time.Time) {
			w.terminateTasks(a, at, engine.TimedOut, "its time limit of "+spec.TimeLimit.String()+" has passed", sigterm, a.launch.Grace)
		})
	}
	if o.LoseNode != "" {
		a.planEvent("lose", at.Add(o.After), func(at time.Time) { w.loseNode(a, o.LoseNode, at) })
	}
}

func (w *World) loseNode(a *attempt, node string, at time.Time) {
	if a.report.Phase == engine.Ended {
		return
	}
	if a.outcome.Silent {
		a.report.Uncertain, a.report.Message = true, "no word from "+node
		a.cancelEvents("run", "limit")
		a.still = nil
		w.publishReport(a)
		a.quiet = true
		return
	}
	a.report.Cause, a.report.Message = engine.NodeLost, "the supervisor on "+node+" died"
	a.markLost(node)
	w.endAttempt(a, at, job.ExitCode{Signal: sigkill})
}

// markLost notes the node with which the attempt was lost.
func (a *attempt) markLost(node string) {
	for i := range a.report.Nodes {
		if n := &a.report.Nodes[i]; n.Node == node {
			n.Lost = true
		}
	}
}

// stopAttempt is engine.Stop.
func (w *World) stopAttempt(a *attempt, s engine.Stop) {
	if len(a.away) > 0 {
		a.asked = append(a.asked, func() { w.stopAttempt(a, s) })
		return
	}
	if w.drainRequests(a, s) {
		return
	}
	w.terminateTasks(a, w.cfg.Now(), engine.Stopped, s.Reason, cmp.Or(s.Signal, sigterm), s.Grace)
}

// terminateTasks sends the signal to end now and plans the kill.
func (w *World) terminateTasks(a *attempt, at time.Time, cause engine.Cause, text string, signal int, grace time.Duration) {
	if a.report.Phase == engine.Ended || a.quiet {
		return
	}
	a.report.Cause = cmp.Or(a.report.Cause, cause)
	a.report.Message = cmp.Or(a.report.Message, text)
	a.cancelEvents("ready", "limit", "lose", "drain")
	o := a.outcome
	if a.still = nil; signal != sigkill && grace > 0 {
		a.report.Suspended = false // so that it can act on the signal
	}
	switch {
	case a.report.Phase < engine.Running:
		w.endAttempt(a, at, job.ExitCode{Signal: sigterm})
		return
	case !o.Resists && !o.Immune && signal != sigkill && grace > 0:
		w.endAttempt(a, at, job.ExitCode{Signal: signal})
		return
	}
	if a.report.Phase < engine.Ending {
		a.report.Phase = engine.Ending
		w.publishReport(a)
	}
	a.cancelEvents("run")
	kill := at.Add(grace)
	if signal == sigkill {
		kill = at
	}
	if i := slices.IndexFunc(a.next, func(h happening) bool { return h.tag == "kill" }); i >= 0 && !a.next[i].at.After(kill) {
		return
	}
	a.cancelEvents("kill")
	a.planEvent("kill", kill, func(at time.Time) {
		a.killed = true
		if !o.Immune || a.freed {
			w.endAttempt(a, at, job.ExitCode{Signal: sigkill})
		}
	})
}

// applySignal lets the program act on a signal: SIGKILL to the batch script ends
// it, SIGTERM if it does not resist.
func (w *World) applySignal(a *attempt, signal int, to engine.Scope) {
	if len(a.away) > 0 {
		a.asked = append(a.asked, func() { w.applySignal(a, signal, to) })
		return
	}
	fatal := signal == sigkill || signal == sigterm && !a.outcome.Resists
	if to == engine.ToTasks || !fatal || a.outcome.Immune {
		return
	}
	a.report.Cause = cmp.Or(a.report.Cause, engine.Exited)
	w.endAttempt(a, w.cfg.Now(), job.ExitCode{Signal: signal})
}

// endAttempt is the proved end of an attempt.
func (w *World) endAttempt(a *attempt, at time.Time, code job.ExitCode) {
	if a.report.Phase == engine.Ended {
		return
	}
	a.next, a.still = nil, nil
	r := &a.report
	if r.Phase < engine.Ending {
		r.Phase = engine.Ending
		w.publishReport(a)
	}
	r.Tasks = slices.Clone(r.Tasks)
	for i := range r.Tasks {
		t := &r.Tasks[i]
		t.Running, t.Ended, t.Exit, t.Cause = false, at, code, r.Cause
	}
	r.Phase, r.Ended, r.Exit, r.Gone, r.Uncertain, r.Suspended = engine.Ended, at, code, true, false, false
	w.publishReport(a)
}
