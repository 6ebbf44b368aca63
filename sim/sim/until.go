package sim

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// RunUntil lets everything happen that is planned up to an instant, which is now then. Events that are
// planned for it afterwards happen at it too.
func (s *Sim) RunUntil(when time.Duration) {
	for {
		next := time.Duration(s.Core.Next())
		if len(s.queue) > 0 && (next == 0 || s.queue[0].when <= next) {
			next = s.queue[0].when
		}
		if next == 0 && len(s.queue) == 0 || next > when || !s.Step() {
			break
		}
	}
	s.Now = max(s.Now, when)
}

// Requeue ends a running job now and lets it wait again, for its work but what it has saved of it.
func (s *Sim) Requeue(id job.ID, saved time.Duration) {
	j := s.jobs[id]
	if j == nil || !j.Started || j.Ended || j.leaves != "" || j.held {
		return
	}
	s.preemptJob(j, sched.Preempt{Job: id, Mode: account.PreemptCheckpoint})
	j.since, j.left = s.Now, max(j.Work-saved, 1)
}
