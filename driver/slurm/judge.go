package slurm

import (
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs"
	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

const (
	sigkill = 9
	sigterm = 15
)

// skew is how much clocks may differ.
const skew = 2 * time.Minute

// unhinted is how long a job may run in Slurm's eyes before its script's word is not
// waited for any more: the hint may never come.
const unhinted = 15 * time.Second

// judgeJob makes a report of what was seen of an attempt's job.
func (e *Engine) judgeJob(a *attempt) error {
	e.mu.Lock()
	j, gone, over := a.poll.job, a.poll.unknownSince, a.ended
	e.mu.Unlock()
	if !over && j != nil {
		if done, err := e.endMisowned(a, j); done || err != nil {
			return err
		}
	}
	switch {
	case over:
		return nil
	case j != nil && j.State.Final() && !j.Completing:
		return e.reportJobEnd(a, j)
	case !gone.IsZero():
		return e.handleLostJob(a, gone)
	case j == nil:
		return nil
	case j.Restarts > a.base:
		return e.handleRequeued(a, j)
	}
	return e.reportProgress(a, j)
}

// reportProgress reports a job that has not ended.
func (e *Engine) reportProgress(a *attempt, j *site.Job) error {
	if over, err := e.endStuckCompleting(a, j); over || err != nil {
		return err
	}
	if e.blind {
		if over, err := e.checkOutlivedJob(a, j); over || err != nil {
			return err
		}
	}
	if err := e.letGo(a, j); err != nil {
		return err
	}
	e.mu.Lock()
	r, begun, stop := a.report, a.hint.begun, a.stop
	e.mu.Unlock()
	r.Uncertain, r.ExpectedStart, r.Held = false, time.Time{}, false
	phase, first := engine.Accepted, false
	switch {
	case j.Completing:
		phase = engine.Ending
	case j.State == site.Pending:
		if stop == nil {
			r.Message = a.describePending(j)
			r.ExpectedStart, r.Held = a.expected, j.Held
		}
	case j.State == site.Running || j.State == site.Suspended:
		phase = engine.Ready
		barred := stop != nil && stop.Barred
		if begun.IsZero() && !barred && !j.Started.IsZero() && (e.blind || time.Since(j.Started) > unhinted) {
			begun = j.Started
		}
		if !begun.IsZero() {
			phase = engine.Running
		}
		if stop == nil {
			r.Message = ""
		}
	}
	if !begun.IsZero() && r.Started.IsZero() && phase >= engine.Running {
		r.Started, first = begun, true
	}
	if stop != nil && phase >= engine.Running {
		phase = engine.Ending
	}
	r.Phase = max(r.Phase, phase)
	r.Suspended = j.State == site.Suspended
	if len(j.Nodes) > 0 && !j.Completing { // squeue has only those then that are not free again
		r.Nodes = nodesOf(j, r.Phase)
	}
	r.Files = sbatchargs.OutputFiles(a.order.Job, a.id, j.Nodes)
	if r.Phase >= engine.Running {
		r.Tasks = a.batchTaskReport(&r, true, job.ExitCode{})
	} else {
		r.Files = nil
	}
	if first {
		if err := e.log.Append(&entry{Kind: started, Ref: a.ref, Report: &r}); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	a.countPause(r.Suspended)
	e.publishReport(a, r)
	return nil
}

// endStuckCompleting deals with a job whose script has said its last word and that slurmctld calls
// running: it lost what the node told it, while it was down, and holds the nodes for ever.
// After a while the job is ended in Slurm too, and if that does not help the word counts.
func (e *Engine) endStuckCompleting(a *attempt, j *site.Job) (over bool, err error) {
	e.mu.Lock()
	done, status, noted, freed, at := a.hint.done, a.hint.status, a.hint.noted, a.hint.freed, a.poll.at
	e.mu.Unlock()
	switch {
	case done.IsZero() || j.State != site.Running || j.Completing || time.Since(noted) < e.cfg.Settle:
		return false, nil
	case !freed.IsZero() && at.Sub(freed) > e.cfg.Settle: // said so long after, and not just silent since
		return true, e.byItsWord(a, done, status)
	case !freed.IsZero():
		return false, nil
	}
	ctx, cancel := e.controller.callContext()
	defer cancel()
	now, err := e.controller.currentJob(ctx, a)
	if err != nil || now == nil || now.State != site.Running || now.Completing {
		return false, err
	}
	if err := e.owners.siteToChange(a.user).End(ctx, a.id); err != nil {
		return false, err
	}
	e.mu.Lock()
	a.hint.freed = time.Now()
	e.mu.Unlock()
	return false, nil
}

// reportJobEnd reports the end of a job, if it is the end of what took the lock.
func (e *Engine) reportJobEnd(a *attempt, j *site.Job) error {
	e.mu.Lock()
	done, status, freed := a.hint.done, a.hint.status, !a.hint.freed.IsZero()
	e.mu.Unlock()
	if freed {
		return e.byItsWord(a, done, status)
	}
	if wait, err := e.findCanceller(a, j); wait || err != nil {
		return err
	}
	b, reported, err := e.finalStartRecord(a, j)
	switch {
	case reported || err != nil:
		return err
	case b == nil && j.Restarts > a.base: // put back, and not begun again
		return e.handleRequeued(a, j)
	case b == nil:
		return e.endNeverStarted(a, j)
	case b.id != a.id: // sent twice: the other one began
		return e.recordJobID(a, b.id)
	case !e.recordCoversStart(a, j, b):
		return e.endSecondStart(a, j, b)
	}
	if left, err := e.provenGone(a, j, b); !left || err != nil {
		return err
	}
	used, wait := e.usageAtEnd(a, j)
	if wait {
		return nil
	}
	slurms, err := e.controller.cancelledBySlurm(j)
	if err != nil {
		return err
	}
	e.mu.Lock()
	r, begun, done, status, stop, last := a.report, a.hint.begun, a.hint.done, a.hint.status, a.stop, a.poll.at
	e.mu.Unlock()
	now := time.Now()
	r.Phase, r.Gone, r.Uncertain, r.Suspended = engine.Ended, true, false, false
	if r.Started.IsZero() {
		if begun.IsZero() && !j.Started.IsZero() {
			begun = j.Started
		}
		r.Started = begun
	}
	r.Ended = endOf(j.Ended, now, done, last, r.Started)
	if stop != nil && r.Ended.Before(stop.Kill) && j.Exit.Signal == sigkill && !stop.Kill.After(now) {
		r.Ended = stop.Kill // Slurm says whole seconds
	}
	cause, message := causeOf(j)
	if slurms && stop == nil {
		cause, message = engine.NodeLost, "Slurm cancelled the job itself after slurmctld began anew: the log of slurmd says why"
	}
	r.Exit = j.Exit
	if own, known := parseExitStatus(status); known && own != 0 && j.State == site.Failed && j.Exit.Signal == 0 {
		r.Exit.Status = own // accounting by slurmrestd v0.0.38 knows no exit codes
	}
	if r.Cause == "" {
		r.Cause = cause
		r.Message = message
	}
	if stop != nil && stop.Cause == engine.Exited && r.Exit.OK() {
		r.Exit.Status = 1 // it was ended because a probe failed, whatever it made of that
	}
	if r.Exit.Status == script.ExitPortless && a.guard.Ports != nil && r.Message == "" {
		r.Message = "its ports cannot be had: its output says why"
	}
	if r.Exit.OK() && j.State != site.Completed && cause != engine.Exited {
		r.Exit = job.ExitCode{Signal: sigterm}
		if cause == engine.OutOfMemory || cause == engine.NodeLost {
			r.Exit.Signal = sigkill
		}
	}
	if ran := e.ranOn(a, j, b); len(ran) > 0 {
		all := *j
		all.Nodes, all.More, j = ran, nil, &all
	}
	if len(j.Nodes) > 0 {
		r.Nodes = nodesOf(j, engine.Ended)
	} else {
		for i := range r.Nodes {
			r.Nodes[i].Phase = engine.Ended
		}
	}
	r.Files = nil
	if !r.Started.IsZero() {
		r.Files = sbatchargs.OutputFiles(a.order.Job, a.id, j.Nodes)
	}
	r.Tasks = a.batchTaskReport(&r, false, r.Exit)
	addUsage(&r, used)
	return e.recordLastReport(a, r)
}

// ranOn are the nodes of an attempt that began: those that it was pinned to, or those in its
// lock. The record may lack those of a heterogeneous job's other components, and accounting's
// may be that of another job with the number. nil: as the record says.
func (e *Engine) ranOn(a *attempt, j *site.Job, b *startRecord) []string {
	switch {
	case e.cfg.Placed:
		return a.claimedNodes()
	case len(b.nodes) > len(j.Nodes)+len(j.More), len(b.nodes) > 0 && len(a.order.Job.Spec.Groups) <= 1:
		return b.nodes
	}
	return nil
}

// endOf is when a job ended. Slurm's time is a whole second, in which it was said to live
// perhaps, or its script said that it ended.
func endOf(said, now, done, last, begun time.Time) time.Time {
	if said.IsZero() || said.After(now) {
		said = now
	}
	end := said
	for _, later := range []time.Time{done, last, begun} {
		if later.After(end) && later.Before(said.Add(2*time.Second)) && !later.After(now) {
			end = later
		}
	}
	if end.Before(begun) {
		end = begun
	}
	return end
}

// findCanceller finds out who cancelled a job that we did not: accounting knows, a little later.
// wait: it is not known yet.
func (e *Engine) findCanceller(a *attempt, j *site.Job) (wait bool, err error) {
	e.mu.Lock()
	ours := a.stop != nil
	e.mu.Unlock()
	if ours || j.State != site.Cancelled || j.CancelledBy != "" {
		return false, nil
	}
	ctx, cancel := e.controller.callContext()
	defer cancel()
	past, err := e.cfg.Site.Past(ctx, []uint32{a.id})
	if fault.KindOf(err) == fault.Unsupported {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range past {
		p := &past[i]
		if p.ID == a.id && p.State == site.Cancelled && p.Submitted.Equal(j.Submitted) && p.CancelledBy != "" {
			j.CancelledBy = p.CancelledBy
			return false, nil
		}
	}
	if time.Since(j.Ended) < 3*e.cfg.Settle {
		time.AfterFunc(time.Second, a.wakeUp)
		return true, nil
	}
	return false, nil
}

// causeOf is what Slurm says of an end.
func causeOf(j *site.Job) (engine.Cause, string) {
	switch j.State {
	case site.TimedOut:
		return engine.TimedOut, "Slurm ended it at its time limit"
	case site.PastItsTime:
		return engine.TimedOut, "Slurm: its deadline has passed"
	case site.OutOfMemory:
		return engine.OutOfMemory, "Slurm: out of memory"
	case site.NodeFailed:
		if len(j.Nodes) == 0 {
			return engine.NodeLost, "Slurm gave it up (NODE_FAIL): its partition, or nodes that it asks for, are not there any more (scontrol show partition)"
		}
		return engine.NodeLost, "Slurm: a node failed, of " + strings.Join(j.Nodes, ",") + "; one that is only cut off may go on with it until its slurmd is heard again"
	case site.BootFailed:
		return engine.NodeLost, "Slurm: a node did not boot"
	case site.Preempted:
		return engine.Preempted, "preempted by Slurm"
	case site.Cancelled:
		by := "somebody"
		if j.CancelledBy != "" {
			by = "uid " + j.CancelledBy
		}
		return engine.Cancelled, "cancelled in Slurm by " + by
	}
	return engine.Exited, ""
}

// handleLostJob: slurmctld does not know the job, and accounting has no end of it.
func (e *Engine) handleLostJob(a *attempt, since time.Time) error {
	e.mu.Lock()
	r, c, last, done, status := a.report, e.seen.cluster, a.poll.at, a.hint.done, a.hint.status
	e.mu.Unlock()
	if time.Since(since) < e.cfg.Settle {
		return nil // the polls go on and wake it
	}
	if e.blind {
		return e.lostBlind(a)
	}
	ctx, cancel := e.controller.callContext()
	defer cancel()
	held, err := e.fenceLock(ctx, a, a.base)
	if err != nil {
		return err
	}
	if held == fenced {
		// It is not cancelled, should it be found again: the number may be another's by now.
		return e.endUnstarted(a, engine.Unready, fmt.Sprintf("Slurm lost job %d before it began", a.id))
	}
	switch {
	case !done.IsZero():
		return e.byItsWord(a, done, status)
	case !c.Booted.IsZero() && c.MinAge > 0 && time.Since(last) > c.MinAge && c.Booted.Before(last.Add(-skew)):
		if why, err := e.owners.whyHidden(ctx, a.user); err != nil || why != "" {
			if err == nil {
				e.reportUncertain(a, fmt.Sprintf("Slurm does not show job %d any more, which had begun: %s", a.id, why))
			}
			return err
		}
		// The same slurmctld knew it when nobody looked: it ended, and was purged.
		r.Ended, r.Exit = last, job.ExitCode{Signal: sigkill}
		if r.Cause == "" {
			r.Cause = engine.NodeLost
		}
		r.Message = "Slurm does not know the job any more, and how it ended"
		return e.reportEnded(a, r)
	}
	b := readBirth(held)
	if gone, err := e.probeNodes(a, &b); err != nil {
		return err
	} else if gone {
		return e.reportVanished(a)
	}
	e.reportUncertain(a, fmt.Sprintf("Slurm lost job %d, which had begun; whether it lives on its nodes is not known", a.id))
	return nil
}
