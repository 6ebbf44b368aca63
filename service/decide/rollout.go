package decide

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
)

// launchAttempts is how many attempts of a job that cannot be started show that its revision is bad.
const launchAttempts = 3

// canaryShare is the per cent of the requests of the canary step that a rollout is at; false: it is
// at none.
func (p *plan) canaryShare() (int, bool) {
	r := p.doc.Rollout
	if r.Over() || r.From == 0 {
		return 0, false
	}
	steps := p.doc.Revision(r.To).Spec.Update.Canary
	if r.Step >= len(steps) {
		return 0, false
	}
	return steps[r.Step], true
}

// canaryReplicas is how many replicas of the new revision a canary step has.
func (p *plan) canaryReplicas(share int) int {
	want := p.doc.Want
	return min(want, max(1, (want*share+99)/100))
}

// advanceRollout follows the rollout: progress, failure, the steps of a canary, its end.
func (p *plan) advanceRollout() {
	r := p.doc.Rollout
	if r == nil {
		return
	}
	target := p.doc.Target()
	switch r.Phase {
	case service.Rolling, service.Undoing:
		if n := p.countReadyOf(target); n > r.Ready {
			r.Ready, r.Since = n, p.now
		}
		if why := p.findFailure(); why != "" && r.Phase == service.Rolling {
			p.failRollout(why)
			return
		}
	case service.Halted:
		if r.From != 0 {
			return
		}
	default:
		return
	}
	if share, ok := p.canaryShare(); ok && r.Phase == service.Rolling {
		p.advanceCanary(share)
		return
	}
	p.completeRollout(target)
}

// completeRollout ends a rollout when every replica that is wanted is of the target and ready, and
// none of another revision has a slot.
func (p *plan) completeRollout(target uint32) {
	for _, x := range p.replicas {
		if x.slot.Revision != target {
			return
		}
	}
	if p.countReadyOf(target) < p.doc.Want {
		return
	}
	r := p.doc.Rollout
	if r.Phase == service.Undoing {
		r.Phase = service.Undone
	} else {
		r.Phase, r.Why = service.Done, ""
	}
	p.doc.Current, r.Since, r.Step = target, p.now, 0
}

// advanceCanary goes to the next step when every replica of this one was ready for its time.
func (p *plan) advanceCanary(share int) {
	r := p.doc.Rollout
	update := &p.spec.Update
	if p.countReadyOf(r.To) < p.canaryReplicas(share) {
		return
	}
	step := update.Step
	if step <= 0 {
		step = service.DefaultStep
	}
	if end := r.Since.Add(step); end.After(p.now) {
		p.wakeAt(end)
		return
	}
	r.Step, r.Since = r.Step+1, p.now
}

// failRollout goes back to the old revision, or stops where it is.
func (p *plan) failRollout(why string) {
	r := p.doc.Rollout
	r.Why, r.Since, r.Ready = why, p.now, 0
	if r.From == 0 || p.spec.Update.ManualUndo {
		r.Phase = service.Halted
		return
	}
	r.Phase = service.Undoing
	p.spec = &p.doc.Revision(r.From).Spec
}

// noteCrash judges the end of a program of the new revision.
func (p *plan) noteCrash(r *replica, wasReady bool) {
	o := p.doc.Rollout
	if o == nil || o.Phase != service.Rolling || r.slot.Revision != o.To {
		return
	}
	_, canary := p.canaryShare()
	switch {
	case r.slot.Failed >= crashLoop:
		p.broken = fmt.Sprintf("replica %d ended %d times in a row: %s", r.slot.Index, r.slot.Failed, r.slot.Why)
	case canary && wasReady:
		p.broken = fmt.Sprintf("replica %d of the canary ended: %s", r.slot.Index, r.slot.Why)
	}
}

// findFailure says why the new revision is bad; empty: nothing shows that it is.
func (p *plan) findFailure() string {
	if p.broken != "" {
		return p.broken
	}
	o := p.doc.Rollout
	_, canary := p.canaryShare()
	timeout := p.spec.Update.Timeout
	if timeout <= 0 {
		timeout = service.DefaultTimeout
	}
	for _, r := range p.replicas {
		if r.slot.Revision != o.To || r.isUncertain() || r.isReady() {
			continue
		}
		if f := p.refusal(r.part()); r.job == nil && f != nil && f.Never {
			return fmt.Sprintf("replica %d cannot be submitted: %s", r.slot.Index, f.Why)
		}
		j := r.job
		if j == nil || j.Ending {
			continue
		}
		switch {
		case j.State == job.Pending && j.Flags&job.LaunchFailed != 0 && j.Attempt >= launchAttempts:
			return fmt.Sprintf("replica %d could not be started %d times: %s", r.slot.Index, j.Attempt, orElse(j.Message, j.Waits))
		case j.State != job.Running:
			continue
		case canary && j.Health == Unready && !r.slot.Ready.IsZero() && r.slot.Attempt == j.Attempt:
			return fmt.Sprintf("replica %d of the canary is not ready any more%s", r.slot.Index, prefixed(": ", j.Probe))
		}
		// The time in the queue does not count: that the cluster is full says nothing of the revision.
		since := o.Since
		if j.Started.After(since) {
			since = j.Started
		}
		if end := since.Add(timeout); end.After(p.now) {
			p.wakeAt(end)
		} else {
			return fmt.Sprintf("no progress for %s: replica %d is not ready%s", timeout, r.slot.Index, prefixed(": ", j.Probe))
		}
	}
	return ""
}

func (p *plan) countReadyOf(revision uint32) (n int) {
	for _, r := range p.replicas {
		if r.slot.Revision == revision && r.isReady() {
			n++
		}
	}
	return n
}

// setWeights says how requests are shared between revisions while a canary runs. The new revision
// never gets more than its share of the ready replicas, but for the first of them.
func (p *plan) setWeights() {
	r := p.doc.Rollout
	if r == nil || r.From == 0 || p.doc.Stopping {
		return
	}
	from, to := p.countReadyOf(r.From), p.countReadyOf(r.To)
	if from == 0 || to == 0 || len(p.doc.Revision(r.To).Spec.Update.Canary) == 0 {
		return
	}
	switch r.Phase {
	case service.Undoing, service.Halted:
		p.out.Weights = map[uint32]int{r.From: 100, r.To: 0}
	case service.Rolling, service.Paused:
		share, ok := p.canaryShare()
		if !ok {
			return
		}
		if full := p.canaryReplicas(share); to < full {
			share = max(1, share*to/full)
		}
		p.out.Weights = map[uint32]int{r.From: 100 - share, r.To: share}
	}
}
