package decide

import (
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Pauses before a program is begun anew. They are doubled with each end in a row.
const (
	firstPause  = time.Second
	longestWait = 5 * time.Minute
	forgetAfter = 10 * time.Minute // of being ready, after which earlier ends count no more
)

// crashLoop is how many ends in a row show that a revision is bad.
const crashLoop = 3

// followEnds begins replicas anew whose job has ended.
func (p *plan) followEnds() {
	for _, r := range p.replicas {
		switch {
		case r.job == nil:
		case r.job.State.Final():
			p.restart(r)
		case r.job.State == job.Pending && r.job.Flags&job.HeldFailed != 0:
			// Control starts it no more: a new job does, after a pause.
			stuck := r.job
			r.slot.Failed = max(r.slot.Failed, crashLoop-1)
			p.restart(r)
			p.leaving = append(p.leaving, stuck)
		}
	}
}

// restart prepares the next try of a replica whose job has ended, or starts no more.
func (p *plan) restart(r *replica) {
	j, s := r.job, &r.slot
	ended := j.Ended
	if ended.IsZero() || ended.After(p.now) {
		ended = p.now
	}
	wasReady := !s.Ready.IsZero()
	s.Why = whyEnded(j)
	pause := firstPause
	if isCrash(j) {
		if wasReady && ended.Sub(s.Ready) >= forgetAfter {
			s.Failed = 0
		}
		s.Failed++
		pause = min(firstPause<<min(s.Failed-1, 20), longestWait)
		p.noteCrash(r, wasReady)
	}
	s.Try, s.After, s.Ready, s.Attempt = j.Part.Try+1, ended.Add(pause), time.Time{}, 0
	r.job = nil
}

// isCrash reports whether a job ended by its program, or because that could not be started.
func isCrash(j *Job) bool {
	switch j.State {
	case job.Failed, job.Completed, job.OutOfMemory, job.BootFail:
		return true
	case job.Pending: // held, as its attempts failed
		return true
	}
	return false
}

// whyEnded says for people how a job ended.
func whyEnded(j *Job) string {
	text := ""
	switch {
	case j.State == job.Pending || j.Flags&job.LaunchFailed != 0:
		text = "it could not be started"
	case j.State == job.Completed:
		text = fmt.Sprintf("its program ended with exit 0 (job %s)", j.ID)
	case j.State == job.Failed:
		text = fmt.Sprintf("its program ended with %s (job %s)", j.Exit, j.ID)
	case j.State == job.OutOfMemory:
		text = "it was out of memory"
	case j.State == job.Timeout:
		text = "its time limit ended it"
	case j.State == job.NodeFail:
		text = "its node failed"
	case j.State == job.Preempted:
		text = "it was preempted"
	case j.State == job.Cancelled:
		text = "it was cancelled"
	default:
		text = fmt.Sprintf("its job ended as %s", j.State)
	}
	if message := j.Message; message != "" {
		text += ": " + message
	} else if j.Waits != "" && j.State == job.Pending {
		text += ": " + j.Waits
	}
	return text
}
