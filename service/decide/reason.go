package decide

import (
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
)

// Kind says what a reason is about.
type Kind string

// The kinds of reason.
const (
	Stopping  Kind = "stopping"
	Rollout   Kind = "rollout"
	Scaled    Kind = "scale"
	Waits     Kind = "waits"     // a replica waits in the queue
	Refused   Kind = "refused"   // a submission was refused
	Restarts  Kind = "restarts"  // a replica ended and begins anew
	Uncertain Kind = "uncertain" // nobody can prove a replica running or gone
	NotReady  Kind = "not-ready" // a replica runs and does not serve
	Moves     Kind = "moves"     // a replica is replaced before something ends it
	Leaving   Kind = "leaving"   // a replica drains or ends
)

// Reason is one thing that was decided, or that is missing: a sentence for people without a full stop.
type Reason struct {
	Kind Kind
	Text string
	Job  job.ID // that it is about; 0: it is about no job

	// Replica is what Text says of one replica, without naming it; empty: it is about the service.
	Replica         string
	Index, Revision uint32 // of that replica
}

func (p *plan) say(k Kind, format string, args ...any) {
	p.out.Reasons = append(p.out.Reasons, Reason{Kind: k, Text: fmt.Sprintf(format, args...)})
}

// sayOf says something of the replica at a place, and of its job if there is one.
func (p *plan) sayOf(k Kind, at place, id job.ID, format string, args ...any) {
	name, text := fmt.Sprintf("replica %d", at.index), fmt.Sprintf(format, args...)
	if id != 0 {
		name += fmt.Sprintf(" (job %s)", id)
	}
	p.out.Reasons = append(p.out.Reasons, Reason{Kind: k, Text: name + " " + text, Job: id, Replica: text, Index: at.index, Revision: at.revision})
}

// explain lists the reasons: of the service first, then replica by replica.
func (p *plan) explain() {
	if p.doc.Stopping {
		p.say(Stopping, "the service is being stopped: %s to end", count(len(p.leaving), "replica"))
	}
	p.explainRollout()
	p.explainScale()
	for _, r := range p.replicas {
		p.explainReplica(r)
	}
	for _, j := range p.leaving {
		switch {
		case isUncertain(j):
			p.sayOf(Uncertain, placeOf(j.Part), j.ID, "is to end, and nobody can prove that it has%s", prefixed(": ", j.Message))
		default:
			p.sayOf(Leaving, placeOf(j.Part), j.ID, "of revision %d ends: %s", j.Part.Revision, p.whyLeaving(j))
		}
	}
}

func (p *plan) explainRollout() {
	r := p.doc.Rollout
	if r == nil || p.doc.Stopping {
		return
	}
	ready := p.countReadyOf(p.doc.Target())
	switch r.Phase {
	case service.Rolling:
		text := fmt.Sprintf("revision %d is rolled out: %d of %d replicas ready", r.To, ready, p.doc.Want)
		if r.From == 0 {
			text = fmt.Sprintf("revision %d starts: %d of %d replicas ready", r.To, ready, p.doc.Want)
		}
		if share, ok := p.canaryShare(); ok {
			text += fmt.Sprintf("; canary with %d %% of the requests, step %d of %d", share, r.Step+1, len(p.spec.Update.Canary))
		}
		p.say(Rollout, "%s", text)
	case service.Paused:
		p.say(Rollout, "the rollout of revision %d is paused: %d of %d replicas ready. Resume or undo it", r.To, ready, p.doc.Want)
	case service.Undoing:
		p.say(Rollout, "revision %d failed and is undone: %s. Revision %d: %d of %d replicas ready", r.To, r.Why, r.From, ready, p.doc.Want)
	case service.Undone:
		p.say(Rollout, "revision %d failed and was undone: %s. Revision %d serves", r.To, r.Why, r.From)
	case service.Halted:
		if r.From == 0 {
			text := "not all replicas of revision %d get ready: %s. Those that do not are tried again"
			if p.countReady() == 0 {
				text = "no replica serves: revision %d does not get ready: %s. It is tried again, with longer and longer pauses; submit a file that works, or stop the service"
			}
			p.say(Rollout, text, r.To, r.Why)
		} else {
			p.say(Rollout, "revision %d failed: %s. The rollout stays where it is. Undo it, resume it or submit another revision", r.To, r.Why)
		}
	}
}

func (p *plan) explainScale() {
	if p.doc.Stopping {
		return
	}
	if p.doc.Want == 0 && p.spec.Scale != nil {
		p.say(Scaled, "the service sleeps (%s) and wakes with the next request", orElse(p.doc.ScaledWhy, "no replica is wanted"))
		return
	}
	if p.doc.ScaledWhy != "" {
		p.say(Scaled, "%s wanted since %s: %s", count(p.doc.Want, "replica"), p.doc.ScaledAt.Format(time.RFC3339), p.doc.ScaledWhy)
	}
	if note := p.out.Memory.note; note != "" {
		p.say(Scaled, "now: %s", note)
	}
}

func (p *plan) explainReplica(r *replica) {
	s, j, at := &r.slot, r.job, r.place()
	f := p.refusal(r.part())
	switch {
	case j == nil && f != nil:
		p.sayOf(Refused, at, 0, "was not submitted: %s. The next try is at %s", f.Why, f.Until.Format(time.TimeOnly))
	case j == nil && s.After.After(p.now):
		p.sayOf(Restarts, at, 0, "ended%s: %s. It begins anew at %s", times(s.Failed), s.Why, s.After.Format(time.TimeOnly))
	case j == nil:
	case isUncertain(j):
		p.sayOf(Uncertain, at, j.ID, "may run or not, nobody can prove it%s. It gets no requests, and another one takes its place", prefixed(": ", j.Message))
	case j.Ending:
		p.sayOf(Leaving, at, j.ID, "ends%s. It begins anew", prefixed(": ", j.Message))
	case j.State == job.Pending:
		p.sayOf(Waits, at, j.ID, "has not started: %s", orElse(j.Waits, "it was not considered yet"))
	case r.moving:
		p.sayOf(Moves, at, j.ID, "is replaced: %s ends it at %s", j.EndsWhy, j.EndsAt.Format(time.RFC3339))
	case !r.isReady():
		text := prefixed(": ", j.Probe)
		if s.Failed > 0 {
			text += fmt.Sprintf("; it was begun anew%s, as %s", times(s.Failed), s.Why)
		}
		p.sayOf(NotReady, at, j.ID, "is not ready%s", text)
	}
}

func times(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times in a row)", n)
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// prefixed is the text behind a prefix, if there is one.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
