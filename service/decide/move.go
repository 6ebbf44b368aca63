package decide

import (
	"slices"
	"time"
)

// firstStart is how long a replica is taken to start before one was measured.
const firstStart = 30 * time.Second

// startTime is how long a replica takes from its submission to be ready: the longest start that was
// measured lately and a quarter more, and 2 s for the submission and the start of its job.
func (p *plan) startTime() time.Duration {
	if len(p.doc.StartTimes) == 0 {
		return firstStart
	}
	return slices.Max(p.doc.StartTimes)*5/4 + 2*time.Second
}

// markMoves marks the replicas that something will end so soon that their replacement has to begin
// now. Several that end together are replaced one after another, as many at a time as the update
// allows, so the last of them begins one start-up time ahead of its end and each other one earlier.
// A replica is never moved in the first half of its life.
func (p *plan) markMoves() {
	var ending []*replica
	for _, r := range p.replicas {
		if r.job != nil && !r.job.EndsAt.IsZero() && !r.job.Started.IsZero() && !r.isUncertain() && !r.job.Ending {
			ending = append(ending, r)
		}
	}
	slices.SortStableFunc(ending, func(a, b *replica) int { return a.job.EndsAt.Compare(b.job.EndsAt) })
	surge, unavailable := p.allowances()
	together, start := max(surge, unavailable, 1), p.startTime()
	if surge == 0 { // the old one goes first
		start += p.spec.Job.Serve.Drain
	}
	begins := make([]time.Time, len(ending))
	for i := len(ending) - 1; i >= 0; i-- {
		j := ending[i].job
		begins[i] = j.EndsAt.Add(-start)
		if after := i + together; after < len(ending) && begins[after].Add(-start).Before(begins[i]) {
			begins[i] = begins[after].Add(-start)
		}
		if half := j.Started.Add(j.EndsAt.Sub(j.Started) / 2); begins[i].Before(half) {
			begins[i] = half
		}
		if begins[i].After(p.now) {
			p.wakeAt(begins[i])
			continue
		}
		ending[i].moving = true
	}
}
