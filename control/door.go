package control

import (
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// countSubmission counts n jobs that are about to be accepted, or refuses them. done has to be
// called when it is known whether they were: then they are counted as jobs.
func (l *loop) countSubmission(s *job.Spec, n int) (done func(), err error) {
	door := l.state.Submits.LimitDoor(l.state.Policies.CurrentPolicy(), l.coming)
	if door == nil {
		return func() {}, nil
	}
	k := state.SubmitKey(s)
	if why := door.Refuses(k, n); why.Code != reason.None {
		return nil, tooMany(why)
	}
	door.Add(k, n)
	l.coming[k] += n
	return func() {
		if l.coming[k] -= n; l.coming[k] == 0 {
			delete(l.coming, k)
		}
		if d := l.state.Submits.Door; d != nil {
			d.Add(k, -n)
		}
	}, nil
}

func tooMany(why reason.Reason) error {
	return fault.New(fault.Conflict, "%s: %s may have %d waiting and running, has %d, and %d more were submitted", why.Code.Limit(), why.Holder, why.Most, why.Used, why.Need).
		Advise("wait until some have ended, cancel some (cox cancel), or submit fewer at once")
}
