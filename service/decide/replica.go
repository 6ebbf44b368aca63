package decide

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
)

// replica is a slot with its job.
type replica struct {
	slot   service.Slot
	job    *Job // nil: it is not submitted, or has ended
	moving bool // something will end it soon: another one takes its place
}

func placeOf(p job.Part) place { return place{p.Index, p.Revision} }

func (r *replica) place() place { return place{r.slot.Index, r.slot.Revision} }

// part is the part of its job; the controller's name is left to whoever submits.
func (r *replica) part() job.Part {
	return job.Part{Index: r.slot.Index, Revision: r.slot.Revision, Try: r.slot.Try}
}

// isUncertain reports whether nobody can prove its job running or gone: it gets no traffic and
// counts for nothing but quotas.
func (r *replica) isUncertain() bool { return r.job != nil && isUncertain(r.job) }

func isUncertain(j *Job) bool { return j.Flags&job.Uncertain != 0 }

// isReady reports whether it gets requests.
func (r *replica) isReady() bool {
	return r.job != nil && r.job.State == job.Running && r.job.Health == Ready && !r.job.Ending && !r.isUncertain()
}

// isUnknown reports whether it may be ready without our knowledge.
func (r *replica) isUnknown() bool {
	return r.job != nil && r.job.State == job.Running && r.job.Health == Unknown && !r.job.Ending && !r.isUncertain()
}

// joinJobs finds the job of each slot. Living jobs that no slot names have to leave.
func (p *plan) joinJobs() {
	at := map[place]*replica{}
	for _, s := range p.doc.Replicas {
		r := &replica{slot: s}
		p.replicas = append(p.replicas, r)
		at[r.place()] = r
	}
	p.ended = map[place]uint32{}
	for i := range p.in.Jobs {
		j := &p.in.Jobs[i]
		where := placeOf(j.Part)
		p.ended[where] = max(p.ended[where], j.Part.Try+1)
		r := at[where]
		switch {
		case r != nil && r.slot.Try == j.Part.Try:
			r.job = j
		case !j.State.Final():
			p.leaving = append(p.leaving, j)
		}
	}
}

// newSlot adds a replica of a revision at the lowest index that is free.
func (p *plan) newSlot(revision uint32, spare bool) {
	taken := map[uint32]bool{}
	for _, r := range p.replicas {
		if r.slot.Revision == revision {
			taken[r.slot.Index] = true
		}
	}
	for _, j := range p.leaving {
		if j.Part.Revision == revision && !planted.PlaceTwice {
			taken[j.Part.Index] = true
		}
	}
	index := uint32(0)
	for taken[index] {
		index++
	}
	// A try that is remembered would be answered with its old job.
	try := p.ended[place{index, revision}]
	p.replicas = append(p.replicas, &replica{slot: service.Slot{Index: index, Revision: revision, Try: try, Spare: spare}})
}

// removeSlot removes a replica; its job, if one lives, has to leave.
func (p *plan) removeSlot(r *replica) {
	p.replicas = slices.DeleteFunc(p.replicas, func(o *replica) bool { return o == r })
	if r.job != nil && !r.job.State.Final() {
		p.leaving = append(p.leaving, r.job)
	}
}

// countExisting counts the replicas that take room, or will.
func (p *plan) countExisting() (n int) {
	for _, r := range p.replicas {
		if !r.isUncertain() {
			n++
		}
	}
	for _, j := range p.leaving {
		if !isUncertain(j) {
			n++
		}
	}
	return n
}

// countLiving counts the jobs that take room, or wait for it.
func (p *plan) countLiving() (n int) {
	for _, r := range p.replicas {
		if r.job != nil && !r.isUncertain() {
			n++
		}
	}
	for _, j := range p.leaving {
		if !isUncertain(j) {
			n++
		}
	}
	return n
}

// countReady counts the replicas that serve.
func (p *plan) countReady() (n int) {
	for _, r := range p.replicas {
		if r.isReady() {
			n++
		}
	}
	return n
}

// keepers are the replicas of a revision that can stay.
func (p *plan) keepers(revision uint32) (out []*replica) {
	for _, r := range p.replicas {
		if r.slot.Revision == revision && !r.moving && !r.isUncertain() {
			out = append(out, r)
		}
	}
	return out
}

// noteReady notes which replicas are ready for the first time, and how long they took.
func (p *plan) noteReady() {
	for _, r := range p.replicas {
		if !r.isReady() || !r.slot.Ready.IsZero() && r.slot.Attempt == r.job.Attempt {
			continue
		}
		r.slot.Ready, r.slot.Attempt = p.now, r.job.Attempt
		if took := p.now.Sub(r.job.Started); !r.job.Started.IsZero() && took >= 0 {
			p.doc.StartTimes = append(p.doc.StartTimes, took.Round(time.Millisecond))
			if n := len(p.doc.StartTimes); n > service.MostStartTimes {
				p.doc.StartTimes = p.doc.StartTimes[n-service.MostStartTimes:]
			}
		}
	}
}

func compareReplicas(a, b *replica) int {
	return cmp.Or(cmp.Compare(a.slot.Index, b.slot.Index), cmp.Compare(a.slot.Revision, b.slot.Revision))
}
