package local

import (
	"cmp"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// gang is one attempt: all its nodes. Only the goroutine in run touches it, but
// for launch, whole, inbox and done.
type gang struct {
	e      *Engine
	launch *attempt.Launch        // without script and environment
	whole  atomic.Pointer[[]byte] // with them, encoded; nil once every part has it
	inbox  chan func()
	done   chan struct{} // closed when it has ended, and that is on record

	parts    []*nodeAttempt
	decided  attempt.EntryKind // EntryGo, EntryAbort; empty: not yet
	started  time.Time         // when the barrier was opened
	phase    engine.Phase
	cause    engine.Cause // as decided here; empty: the head's
	text     string
	asked    *engine.Stop // the first Stop
	askedAt  time.Time
	ended    bool // everything is gone
	late     *time.Timer
	newLimit *time.Duration // its time limit was changed to
	limit    *time.Timer    // the time limit has long passed, and its supervisors did not see to it

	limitWaiters []chan struct{} // are closed once every supervisor has newLimit
	holds        uint64          // commands to suspend it or let it go on, so far

	gpus     map[string][]rusage.GPU // what they were used for, by node, once measured
	measured bool

	unchecked int // nodes of which it is not known yet whether they may get the work

	deviceError string // as in engine.Report, once its output was looked at
	searched    bool   // it was
}

func (e *Engine) newGang(l *attempt.Launch, whole []byte) *gang {
	bare := *l
	bare.Script, bare.Env = nil, nil
	g := &gang{
		e: e, launch: &bare, inbox: make(chan func()), done: make(chan struct{}),
		phase: engine.Accepted, late: time.NewTimer(e.cfg.Ready + e.cfg.FitWithin + l.Hooks.Timeout + pullLimit(l)),
		limit: time.NewTimer(time.Hour),
	}
	g.limit.Stop()
	g.whole.Store(&whole)
	for i := range l.Nodes {
		g.parts = append(g.parts, &nodeAttempt{
			gang: g, index: i, node: l.Nodes[i], commands: make(chan attempt.Command, 64), followed: make(chan struct{}),
		})
	}
	return g
}

// runGang follows the attempt until it has ended or the engine is closed.
func (g *gang) runGang() {
	start := g.decided == ""
	g.checkLaunch()
	for _, p := range g.parts {
		g.e.wg.Go(func() { p.followSupervisor(start) })
	}
	defer g.late.Stop()
	defer g.limit.Stop()
	g.planLimit()
	for !g.ended {
		select {
		case do := <-g.inbox:
			do()
			g.drainEvents()
		case <-g.late.C:
			g.tooLate()
		case <-g.limit.C:
			g.enforceLimit()
		case <-g.e.ctx.Done():
			g.leaveSupervisors()
			return
		}
		if g.advanceGang(); !g.ended {
			g.publishState()
		}
	}
	g.finishGang()
}

// drainEvents handles what else is there, so that one report tells of many changes.
func (g *gang) drainEvents() {
	for range 256 {
		select {
		case do := <-g.inbox:
			do()
		default:
			return
		}
	}
}

// advanceGang decides what follows from the state of the parts.
func (g *gang) advanceGang() {
	if g.decided == "" {
		if p := g.failedAttempt(); p != nil {
			g.abandonLaunch(p.failureCause())
		} else if p := g.unfitAttempt(); p != nil {
			g.abandonLaunch(engine.Unready, fmt.Sprintf("node %s is not fit for work: %s", p.node.Name, p.unfit))
		} else if g.unchecked == 0 && g.allAttempts(func(p *nodeAttempt) bool { return p.state.Phase == engine.Ready }) {
			g.openBarrier()
		}
	}
	if g.decided == attempt.EntryGo {
		g.followParts()
	}
	g.answerLimitWaiters()
	g.ended = g.allAttempts(func(p *nodeAttempt) bool { return p.isGone() })
}

func (g *gang) allAttempts(f func(*nodeAttempt) bool) bool {
	for _, p := range g.parts {
		if !f(p) {
			return false
		}
	}
	return true
}

// failedAttempt returns a part that will never be ready.
func (g *gang) failedAttempt() *nodeAttempt {
	for _, p := range g.parts {
		if p.state.Refused || p.dead || p.state.Phase >= engine.Ending {
			return p
		}
	}
	return nil
}

// openBarrier opens the barrier: the decision is put on record, every supervisor is told.
func (g *gang) openBarrier() {
	g.phase = engine.Ready
	if len(g.parts) > 1 {
		g.publishState()
	}
	started := time.Now().Round(0)
	alloc, err := g.allocationText(started)
	if err != nil {
		g.abandonLaunch(engine.LaunchFailed, err.Error())
		return
	}
	if err := g.writeFirstRoster(); err != nil {
		g.abandonLaunch(engine.Unready, err.Error())
		return
	}
	if err := g.e.log.Append(attempt.Entry{Kind: attempt.EntryGo, Ref: g.launch.Ref, Started: started}); err != nil {
		g.abandonLaunch(engine.Unready, fmt.Sprintf("the start could not be recorded: %v", err))
		return
	}
	g.e.killed.forgetJob(g.launch.Job.ID)
	g.started, g.decided, g.phase = started, attempt.EntryGo, engine.Running
	g.whole.Store(nil)
	g.late.Stop()
	g.planLimit()
	g.tellAll(attempt.Command{Op: attempt.OpGo, Time: g.started, Alloc: alloc, Peers: g.peerSockets()})
	g.tellLimit()
}

// tellGo opens the barrier of a part whose supervisor has not heard of it.
func (g *gang) tellGo(p *nodeAttempt) {
	alloc, err := g.allocationText(g.started)
	if err != nil {
		g.e.cfg.Log.Error("open a barrier again", "attempt", g.launch.Ref, "err", err)
		return
	}
	p.sendCommand(attempt.Command{Op: attempt.OpGo, Time: g.started, Alloc: alloc, Peers: g.peerSockets()})
}

// allocationText is what processes inside may know.
func (g *gang) allocationText(started time.Time) ([]byte, error) {
	j := *g.launch.Job
	j.Attempt = g.launch.Ref.Attempt
	a, err := step.NewAlloc(&j, g.launch.Claims, g.launch.Nodes, step.Place{
		Dir: g.parts[0].at.Dir, Bin: g.e.binDir(), Shown: g.e.cfg.Shown, Cluster: g.e.cfg.Cluster,
		Socket: func(i int) string { return g.parts[i].at.StepSocket() },
	}, started)
	if err != nil {
		return nil, err
	}
	if serve := g.launch.Job.Spec.Serve; serve != nil {
		a.Ports = serve.Variables(g.parts[0].state.Ports)
	}
	a.Checkpoint, a.Restore, a.Machine = g.launch.Checkpoint, g.launch.Restore, g.launch.Machine
	if g.launch.Job.Spec.Elastic() {
		a.Gang = attempt.GangFile(g.e.cfg.Root, gangRef(g.launch))
	}
	if x := g.launch.Adds; x != nil {
		a.Checkpoint, a.FirstRank = g.e.checkpointOf(j.ID), x.First
	}
	return a.Text()
}

// peerSockets are the control sockets of all nodes.
func (g *gang) peerSockets() []string {
	out := make([]string, len(g.parts))
	for i, p := range g.parts {
		out[i] = p.at.ControlSocket()
	}
	return out
}

// followParts keeps the parts together once the barrier is open: when one is lost, or
// the head has ended, the others end.
func (g *gang) followParts() {
	head := g.parts[0]
	// What was asked to end has ended as asked, also if its head's supervisor had to be
	// ended for it.
	open := head.state.Cause == "" || g.asked != nil && head.lost && head.state.Cause == engine.NodeLost
	for _, p := range g.parts {
		if p.lost && g.cause == "" && (open || p.fell && head.hasFailed()) {
			g.cause, g.text = engine.NodeLost, p.failureText()
			if g.asked != nil {
				g.cause = engine.Stopped
			}
			g.endOthers(attempt.Command{Op: attempt.OpStop, Grace: g.launch.Grace, Cause: engine.NodeLost, Text: p.failureText()})
			return
		}
	}
	// The other nodes may have heard of it before the head, whose script then ends with an
	// error because they do.
	if g.asked != nil && g.cause == "" && head.hasFailed() && !head.state.Ended.Before(g.askedAt) {
		g.cause, g.text = engine.Stopped, g.asked.Reason
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
			p.sendCommand(c)
		}
	}
}

func (g *gang) tellAll(c attempt.Command) {
	for _, p := range g.parts {
		p.sendCommand(c)
	}
}

// abandonLaunch undoes a launch whose barrier was not opened.
func (g *gang) abandonLaunch(cause engine.Cause, text string) {
	g.cause, g.text = cmp.Or(g.cause, cause), cmp.Or(g.text, text)
	err := g.e.log.Append(attempt.Entry{Kind: attempt.EntryAbort, Ref: g.launch.Ref, Cause: g.cause, Text: g.text})
	if err != nil {
		g.e.cfg.Log.Error("record that a launch is given up", "attempt", g.launch.Ref, "err", err)
	}
	g.decided = attempt.EntryAbort
	g.late.Stop()
	g.phase = max(g.phase, engine.Ending)
	g.tellAll(attempt.Command{Op: attempt.OpAbort, Cause: g.cause, Text: g.text})
}

func (g *gang) tooLate() {
	if g.decided != "" {
		return
	}
	var slow []string
	for _, p := range g.parts {
		if p.state.Phase < engine.Ready {
			slow = append(slow, p.node.Name)
		}
	}
	g.abandonLaunch(engine.Unready, fmt.Sprintf("%s not ready in %s", strings.Join(slow, ", "), g.e.cfg.Ready))
}

// stopGang is engine.Stop for this attempt.
func (g *gang) stopGang(s engine.Stop) {
	if g.asked == nil {
		g.asked, g.askedAt = &s, time.Now().Round(0)
	}
	if g.decided == "" {
		g.cause, g.text = engine.Stopped, s.Reason
		g.abandonLaunch(engine.Stopped, s.Reason)
		return
	}
	g.tellAll(attempt.Command{Op: attempt.OpStop, Signal: s.Signal, Grace: s.Grace, Drain: s.Drain, Cause: engine.Stopped, Text: s.Reason, Why: s.Why})
}

func (g *gang) signalTasks(n int, to engine.Scope) error {
	if g.decided != attempt.EntryGo {
		return fault.New(fault.Conflict, "attempt %s has not started", g.launch.Ref)
	}
	for i, p := range g.parts {
		if to != engine.ToBatch || i == 0 {
			p.sendCommand(attempt.Command{Op: attempt.OpSignal, Signal: n, Scope: to})
		}
	}
	return nil
}

// finishGang puts the last report on record, gives back the gang's seats, so that who
// hears of the end finds them free, and says that it has ended.
func (g *gang) finishGang() {
	for _, p := range g.parts {
		for followed := false; !followed; {
			select {
			case <-p.followed:
				followed = true
			case do := <-g.inbox:
				do()
			}
		}
	}
	r := g.currentReport()
	for {
		err := g.e.log.Append(attempt.Entry{Kind: attempt.EntryEnd, Ref: g.launch.Ref, Digest: g.launch.Digest, Report: &r})
		if err == nil {
			break
		}
		g.e.cfg.Log.Error("record the end of an attempt; trying again", "attempt", g.launch.Ref, "err", err)
		g.announceReport(r) // the journals say the same
		select {
		case <-time.After(time.Second):
		case <-g.e.ctx.Done():
			g.leaveSupervisors()
			return
		}
	}
	for _, p := range g.parts {
		switch {
		case p.seat != nil && !p.dead && p.seat.process == nil:
			g.e.pool.disposeSlot(p.seat) // adopted: its program may be of another version
		case p.seat != nil && !p.dead:
			g.e.pool.giveBackSlot(p.seat)
		case p.home.Name != "":
			if err := p.home.Remove(); err != nil {
				g.e.cfg.Log.Warn("remove a seat", "seat", p.home.Name, "err", err)
			}
		}
	}
	g.e.removeEmptyCheckpoint(g.launch)
	g.e.removeSecrets(g.launch)
	close(g.done)
	g.announceReport(r)
	g.e.ends.Drop(g.launch.Ref)
	g.e.fence.set(g.launch.Ref, nil)
}

// leaveSupervisors lets the supervisors go on alone.
func (g *gang) leaveSupervisors() {
	for _, p := range g.parts {
		<-p.followed
		if p.seat != nil {
			_ = p.seat.conn.Close()
		}
	}
}

// publishState makes the present state an event if it differs from the last one.
func (g *gang) publishState() {
	g.announceReport(g.currentReport())
	g.publishEndpoints()
}

func (g *gang) announceReport(r engine.Report) {
	if last, ok := g.e.feed.Last(r.Ref); ok {
		last.Version = 0
		if sameReport(last, r) {
			return
		}
	}
	g.e.feed.Publish(r)
}

// currentReport is the state of the attempt from that of its parts.
func (g *gang) currentReport() engine.Report {
	head := g.parts[0].state
	r := engine.Report{
		Ref: g.launch.Ref, Job: g.launch.Job.ID, Started: g.started,
		Cause: cmp.Or(g.cause, head.Cause), Message: cmp.Or(g.text, head.Text), Files: head.Files,
		Image: head.Image,
	}
	ending := false
	for _, p := range g.parts {
		phase := max(p.state.Phase, engine.Accepted)
		ending = ending || phase >= engine.Ending || p.lost
		n := engine.NodeReport{Node: p.node.Name, Phase: phase, Message: p.failureText(), PID: p.at.Identity.PID, Lost: p.lost && r.Cause == engine.NodeLost || p.unfit != "" && r.Cause == engine.Unready}
		if n.Stuck = p.state.Stuck; n.Stuck != "" {
			r.Uncertain = true
			r.Message = fmt.Sprintf("on %s SIGKILL does not end process %s: what it holds stays held until it ends, or the machine is restarted", n.Node, n.Stuck)
		}
		r.Nodes = append(r.Nodes, n)
		r.Tasks = append(r.Tasks, p.state.Tasks...)
		r.Uncertain = r.Uncertain || p.state.Unsaved || (p.deaf || p.open) && !p.isGone()
	}
	sortTasks(r.Tasks)
	r.Suspended = !ending && g.allAttempts((*nodeAttempt).isSuspended)
	r.Saved = head.Saved
	switch {
	case g.ended && !r.Uncertain:
		g.phase = engine.Ended
	case ending:
		g.phase = max(g.phase, engine.Ending)
	}
	r.Phase = g.phase
	r.Gone = r.Phase == engine.Ended
	if r.Phase >= engine.Ending {
		g.fillOutcome(&r)
	}
	if r.Phase == engine.Running {
		g.e.gpus.begin(g.launch.Ref, g.launch.Nodes, g.launch.Claims)
	}
	if r.Gone {
		r.Used = g.usedRecord()
	}
	return r
}

// fillOutcome fills in how the attempt ended, as far as that is known.
func (g *gang) fillOutcome(r *engine.Report) {
	head := g.parts[0].state
	switch {
	case head.Exit != nil:
		r.Exit = *head.Exit
	case g.ended && r.Cause != engine.Stopped:
		r.Exit = job.ExitCode{Status: 1} // never a success: nobody saw it end
	case g.ended:
		r.Exit = job.ExitCode{Signal: 15}
	}
	if r.Cause == engine.Exited {
		g.blameMemory(r)
	}
	if r.Gone {
		g.blameDevice(r)
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

// blameMemory corrects how an attempt ended of which the kernel ended processes at the memory
// limit of a node, whatever its script made of that.
func (g *gang) blameMemory(r *engine.Report) {
	for _, t := range r.Tasks {
		if t.Cause == engine.OutOfMemory {
			r.Cause, r.Exit = engine.OutOfMemory, job.OutOfMemoryExit
			r.Message = cmp.Or(r.Message, g.partOf(t.Node).state.Text)
		}
	}
	for _, p := range g.parts {
		if p.state.OOMKills > 0 {
			r.Cause, r.Exit = engine.OutOfMemory, job.OutOfMemoryExit
			r.Message = cmp.Or(r.Message, p.state.Text)
		}
	}
}

func (g *gang) partOf(node string) *nodeAttempt {
	for _, p := range g.parts {
		if p.node.Name == node {
			return p
		}
	}
	return g.parts[0]
}
