package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/sim/trace"
)

// Remaining simulates gangs of GPUs under preemption without cost, as Muri (SIGCOMM
// 2022, sections 3 and 6) and Tiresias (NSDI 2019) simulate their baselines. It is
// a policy to compare with: it knows how long each job will run, and it is not what
// the core does.
//
// At each submission and each end everything that runs is lifted and placed again,
// shortest first, past what does not fit: by remaining time (SRTF), or by remaining
// time × GPUs (SRSF). A job of at most one node's GPUs goes onto the first node that
// has them; a larger one onto the first idle nodes and, for what is left over, onto
// the first other node that has that.
type Remaining struct {
	Nodes, PerNode int
	Service        bool // SRSF instead of SRTF
}

type lifted struct {
	*trace.Job
	index   int
	left    time.Duration
	running bool
}

// Run returns when each job ends, after the first submission.
func (r Remaining) Run(jobs []trace.Job) []time.Duration {
	ends := make([]time.Duration, len(jobs))
	var active []*lifted
	var now time.Duration
	for next := 0; next < len(jobs) || len(active) > 0; {
		until := time.Duration(1<<63 - 1)
		if next < len(jobs) {
			until = jobs[next].Submit
		}
		for _, j := range active {
			if j.running {
				until = min(until, now+j.left)
			}
		}
		for _, j := range active {
			if j.running {
				j.left -= until - now
			}
		}
		now = until
		active = slices.DeleteFunc(active, func(j *lifted) bool {
			if j.left <= 0 {
				ends[j.index] = now
			}
			return j.left <= 0
		})
		for ; next < len(jobs) && jobs[next].Submit <= now; next++ {
			active = append(active, &lifted{Job: &jobs[next], index: next, left: jobs[next].Run})
		}
		if !r.placeJobs(active) {
			return nil
		}
	}
	return ends
}

// placeJobs decides what runs. It reports false if nothing can although there is work.
func (r Remaining) placeJobs(active []*lifted) bool {
	key := func(j *lifted) time.Duration {
		if r.Service {
			return j.left * time.Duration(j.GPUs)
		}
		return j.left
	}
	slices.SortFunc(active, func(a, b *lifted) int { return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a.index, b.index)) })
	free := make([]int, r.Nodes)
	for i := range free {
		free[i] = r.PerNode
	}
	some := len(active) == 0
	for _, j := range active {
		j.running = r.takeGPUs(free, j.GPUs)
		some = some || j.running
	}
	return some
}

// takeGPUs places one job on what is free, whole or not at all.
func (r Remaining) takeGPUs(free []int, gpus int) bool {
	var whole []int
	for i := range free {
		if len(whole) < gpus/r.PerNode && free[i] == r.PerNode {
			whole = append(whole, i)
		}
	}
	if len(whole) < gpus/r.PerNode {
		return false
	}
	if rest := gpus % r.PerNode; rest > 0 {
		at := 0
		for at < len(free) && (free[at] < rest || slices.Contains(whole, at)) {
			at++
		}
		if at == len(free) {
			return false
		}
		free[at] -= rest
	}
	for _, i := range whole {
		free[i] = 0
	}
	return true
}
