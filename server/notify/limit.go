package notify

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// shares of a time limit that a mail can be asked for, with their events.
var shares = [...]struct {
	percent time.Duration
	event   Event
}{{50, TimeLimit50}, {80, TimeLimit80}, {90, TimeLimit90}}

// limit is a running job that wants to hear how much of its time is used.
type limit struct {
	job   *job.Job // a copy of its own
	timer *time.Timer
}

// limits holds a timer for each such job. Its owner's lock protects it; fire is
// called without it.
type limits struct {
	jobs map[job.ID]*limit
	fire func(id job.ID, attempt uint32, e Event)
}

// followLimit sets the timer for the next share of the job's limit, or forgets the job
// if none is left or it does not run.
func (l *limits) followLimit(j *job.Job, wanted *job.Mail, now time.Time) {
	if old := l.jobs[j.ID]; old != nil {
		if j.State == job.Running && old.job != j && old.job.Attempt == j.Attempt && old.job.Spec.TimeLimit == j.Spec.TimeLimit && old.job.Started.Equal(j.Started) {
			own := *j
			old.job = &own
			return
		}
		old.timer.Stop()
		delete(l.jobs, j.ID)
	}
	if j.State != job.Running || j.Spec.TimeLimit <= 0 || j.Started.IsZero() {
		return
	}
	for _, s := range shares {
		at := j.Started.Add(j.Spec.TimeLimit / 100 * s.percent)
		if !wantsEvent(wanted, s.event) || !at.After(now) {
			continue
		}
		own := *j
		id, attempt, event := j.ID, j.Attempt, s.event
		l.jobs[id] = &limit{job: &own, timer: time.AfterFunc(at.Sub(now), func() { l.fire(id, attempt, event) })}
		return
	}
}

func (l *limits) stop() {
	for id, x := range l.jobs {
		x.timer.Stop()
		delete(l.jobs, id)
	}
}

// followLimit follows the time limit of a job.
func (n *Notifier) followLimit(j *job.Job) { n.limits.followLimit(j, n.outlet.events(j), time.Now()) }

// limitReached queues the mail of a timer and sets the next one.
func (n *Notifier) limitReached(id job.ID, attempt uint32, e Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.limits.jobs[id]
	if n.closed || l == nil || l.job.Attempt != attempt {
		return
	}
	n.enqueueMessage(occasion{job: *l.job, event: e, at: time.Now()})
	n.limits.followLimit(l.job, n.outlet.events(l.job), time.Now())
}
