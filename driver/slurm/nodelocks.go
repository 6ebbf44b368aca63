package slurm

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Where the nodes have their locks on them alone (room.Nodes), the driver sees none: it goes
// by Slurm's records where these can only speak of the beginning that took the lock, and else
// asks all nodes of the attempt (inquire.go). Nodes are pinned there, so that whatever of an
// attempt begins late, or again, begins on the node that has the lock, or the fence. What is
// not known is neither begun nor over: the attempt is uncertain. docs/explanation/design/0010 has the table.

// takerGone is what bars says of a lock whose taker lives no more.
const takerGone = "over"

// fenceLock keeps a beginning of an attempt from taking its lock, and says what stands in it:
// fenced, or who has it. fault.Unavailable: the nodes that have it have not said yet.
func (e *Engine) fenceLock(ctx context.Context, a *attempt, restarts int) (held string, err error) {
	switch {
	case !e.blind:
		mine, held, err := e.cfg.Room.Take(ctx, baseName(a.guard.Lock(restarts)), fenced)
		if mine {
			held = fenced
		}
		return held, err
	case restarts > a.base: // its script sees to that
		return fenced, nil
	}
	w, err := e.locks.query(a, a.claimedNodes())
	switch {
	case err != nil:
		return "", err
	case !w.known:
		return "", fault.New(fault.Unavailable, "whether attempt %s has begun is not known: %s", a.ref, w.why)
	case w.lives:
		return "begun", nil
	case w.began:
		return takerGone, nil
	}
	return fenced, nil
}

// claimedNodes are the nodes on which an attempt begins, if it does.
func (a *attempt) claimedNodes() []string {
	var all []string
	for i := range a.order.Claims {
		all = append(all, a.order.Claims[i].Node)
	}
	return sortedUnique(all)
}

// begunBlind says of the end of a job how its script began; nil: it did not, and does not.
// reported: it is, or it is not known yet.
func (e *Engine) begunBlind(a *attempt, j *site.Job) (b *startRecord, reported bool, err error) {
	switch {
	case j.Restarts > a.base:
		return nil, false, nil // its script has seen to that
	case a.check.locks.isTooEarly():
		return nil, true, nil
	}
	slurms := &startRecord{id: a.id, start: j.Started, nodes: sortedUnique(j.Nodes)}
	if len(j.Nodes) == 0 {
		slurms = nil
	}
	e.mu.Lock()
	ours := a.stop != nil
	e.mu.Unlock()
	sure, err := e.controller.isRecordReliable(a, j, ours)
	if sure && !a.handover.repeated || err != nil {
		return slurms, false, err
	}
	if twin, err := e.followDuplicateJob(a); twin || err != nil {
		return nil, true, err
	}
	nodes, all := a.claimedNodes(), true
	if !endedLikeSecondStart(j) { // of nodes that are down Slurm's word counts
		ctx, cancel := e.controller.callContext()
		defer cancel()
		answering, err := e.controller.answeringNodes(ctx, nodes)
		if err != nil {
			return nil, false, err
		}
		if len(answering) == 0 {
			return slurms, false, nil
		}
		all, nodes = len(answering) == len(nodes), sortedUnique(answering)
	}
	w, err := e.locks.query(a, nodes)
	w.began = w.began || e.wasReportedRunning(a) && !endedLikeSecondStart(j)
	switch {
	case err != nil:
		return nil, false, err
	case j.Exit.Status == script.ExitLockless && w.lockless && !w.lives:
		return nil, false, nil
	case !w.known || w.lives:
		e.reportUncertain(a, fmt.Sprintf("Slurm says that job %d ended (%s), and that may be another beginning of it: %s", a.id, j.State, w.describeUncertainty()))
		return nil, true, nil
	case !w.began && all:
		return nil, false, nil
	case !w.began, recordMatchesWitness(a, j, &w, ours):
		return slurms, false, nil
	case w.done:
		return nil, true, e.byItsWord(a, endOf(j.Ended, time.Now(), time.Time{}, time.Time{}, time.Time{}), strconv.Itoa(w.exit))
	}
	return nil, true, e.reportVanished(a)
}

// endedLikeSecondStart reports whether a job ended as a second beginning of an attempt does.
func endedLikeSecondStart(j *site.Job) bool {
	return j.State == site.Failed && slices.Contains([]int{script.ExitBarred, script.ExitLockless, script.ExitStranger}, j.Exit.Status)
}

// bySlurm reports whether a job was cancelled by nobody that is known, or by root, as a slurmd
// has it done of one that it cannot begin.
func bySlurm(j *site.Job) bool {
	return j.State == site.Cancelled && (j.CancelledBy == "" || j.CancelledBy == "0" || j.CancelledBy == "root")
}

// maybeAnotherJob reports whether a record may be that of another job, to which slurmctld gave the
// same number when it had lost this one: one that asked a node, or that had other nodes.
// Accounting then has the submission of the one and the end of the other.
func (a *attempt) maybeAnotherJob(j *site.Job) bool {
	answers := []int{script.ExitFenced, script.ExitLives, script.ExitSilent}
	return j.State == site.Failed && slices.Contains(answers, j.Exit.Status) || a.onOtherNodes(j)
}

// onOtherNodes reports whether a record names other nodes than those that the attempt was to run
// on. That of a heterogeneous job may have those of its first component alone.
func (a *attempt) onOtherNodes(j *site.Job) bool {
	claimed, at := a.claimedNodes(), sortedUnique(j.Nodes)
	if len(at) == 0 {
		return false
	}
	if len(a.order.Job.Spec.Groups) <= 1 {
		return !slices.Equal(at, claimed)
	}
	return slices.ContainsFunc(at, func(n string) bool { return !slices.Contains(claimed, n) })
}

// soonOver is how soon a job ends that its node could not begin.
const soonOver = 5 * time.Second

// endedLikeLostSlurmd reports whether a job ended as one does whose slurmd died while it began it:
// slurmstepd was seen to give up with 1 and, as the error EIO, with 5; and 1 is what slurmctld
// has of a second beginning that slurmd refuses ("job credential revoked").
func endedLikeLostSlurmd(j *site.Job) bool {
	return j.State == site.Failed && j.Exit.Signal == 0 && (j.Exit.Status == 1 || j.Exit.Status == 5) && j.Ended.Sub(j.Started) <= soonOver
}

// isRecordReliable reports whether the last record of a job can only speak of the one beginning of it:
// slurmctld lives since before it was handed over, and so has forgotten nothing of it.
func (k *controller) isRecordReliable(a *attempt, j *site.Job, ours bool) (bool, error) {
	if endedLikeSecondStart(j) || endedLikeLostSlurmd(j) || a.maybeAnotherJob(j) || j.State == site.NodeFailed && len(j.Nodes) > 0 || bySlurm(j) && !ours && len(j.Nodes) > 0 {
		return false, nil
	}
	ctx, cancel := k.callContext()
	defer cancel()
	c, err := k.site.Cluster(ctx)
	return err == nil && !c.Booted.IsZero() && c.Booted.Before(j.Submitted.Add(-time.Second)), err
}

// recordMatchesWitness reports whether a job's last record is that of a beginning that its nodes tell of.
func recordMatchesWitness(a *attempt, j *site.Job, w *nodeAnswers, ours bool) bool {
	switch {
	case a.onOtherNodes(j):
		return false
	case endedLikeSecondStart(j), a.maybeAnotherJob(j), endedLikeLostSlurmd(j):
		return w.done && w.exit == j.Exit.Status
	case j.State == site.Completed:
		return w.done && w.exit == 0
	case j.State == site.Failed:
		return !w.done || w.exit == j.Exit.Status
	case j.State == site.NodeFailed, bySlurm(j) && !ours:
		return !w.done
	}
	return true // a second beginning reaches no limit, and nobody else cancels it
}

// followDuplicateJob follows another job with the attempt's tag that has not ended, if there is one: it
// was sent twice.
func (e *Engine) followDuplicateJob(a *attempt) (bool, error) {
	j, err := e.controller.findSubmitted(a)
	if err != nil || j == nil || j.ID == a.id || j.State.Final() {
		return false, err
	}
	return true, e.recordJobID(a, j.ID)
}

// lostBlind is for what neither slurmctld nor accounting knows.
func (e *Engine) lostBlind(a *attempt) error {
	if a.check.locks.isTooEarly() {
		return nil
	}
	if twin, err := e.followDuplicateJob(a); twin || err != nil {
		return err
	}
	w, err := e.locks.query(a, a.claimedNodes())
	switch {
	case err != nil:
		return err
	case !w.known || w.lives:
		e.reportUncertain(a, fmt.Sprintf("Slurm lost job %d: %s", a.id, w.describeUncertainty()))
		return nil
	case !w.began && !e.wasReportedRunning(a):
		return e.endUnstarted(a, engine.Unready, fmt.Sprintf("Slurm lost job %d before it began", a.id))
	case w.done:
		return e.byItsWord(a, time.Now(), strconv.Itoa(w.exit))
	}
	return e.reportVanished(a)
}

// wasReportedRunning reports whether an attempt was said to run. A node that says it never began has lost its
// lock then, in a restart perhaps.
func (e *Engine) wasReportedRunning(a *attempt) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !a.report.Started.IsZero()
}

// checkOutlivedJob deals with a job that slurmctld, begun anew, calls running: it may have lost what the
// node told it while it was down, and then the job holds its nodes for ever. Once after each
// such beginning the nodes are asked whether it lives. Meanwhile, and if it does, it runs.
func (e *Engine) checkOutlivedJob(a *attempt, j *site.Job) (over bool, err error) {
	e.mu.Lock()
	booted := e.seen.cluster.Booted
	e.mu.Unlock()
	if j.State != site.Running || j.Completing || !booted.After(j.Started) || booted.Equal(a.check.aliveUnder) || time.Since(booted) < 2*e.cfg.Settle {
		return false, nil
	}
	w, err := e.locks.query(a, a.claimedNodes())
	switch {
	case err != nil || !w.known:
		return false, err
	case w.lives:
		a.check.aliveUnder, a.check.locks = booted, nil
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
	switch {
	case !w.began:
		return true, e.endUnstarted(a, engine.Unready, fmt.Sprintf("Slurm calls job %d running, and its script never began", a.id))
	case w.done:
		return true, e.byItsWord(a, time.Now(), strconv.Itoa(w.exit))
	}
	return true, e.reportVanished(a)
}

// noteController notes which slurmctld it is, for outlived.
func (e *Engine) noteController() error {
	ctx, cancel := e.controller.callContext()
	defer cancel()
	c, err := e.cfg.Site.Cluster(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.seen.cluster = c
	e.mu.Unlock()
	return nil
}

// describeUncertainty says in words why an attempt is uncertain.
func (w *nodeAnswers) describeUncertainty() string {
	if w.lives {
		return "it lives on its nodes"
	}
	return "whether it lives on its nodes is not known (" + w.why + ")"
}
