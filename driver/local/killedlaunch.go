package local

import (
	"sync"

	"github.com/coxswain-sched/coxswain/model/job"
)

// killedLaunches counts, for each job, the launches in a row in which somebody killed a supervisor
// before the job began. The zero value is ready for use, from any goroutine.
type killedLaunches struct {
	mu     sync.Mutex
	counts map[job.ID]int
}

const (
	// freeKills is how many such launches in a row say nothing about the job. After that the launch
	// counts as failed, and the control plane pauses longer each time, and holds the job in the end.
	freeKills = 3
	// killedJobs is how many jobs are counted; beyond it every job begins anew.
	killedJobs = 1024
)

// noteKill counts one more launch of a job and returns how many there were in a row.
func (k *killedLaunches) noteKill(id job.ID) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.counts == nil || len(k.counts) >= killedJobs {
		k.counts = map[job.ID]int{}
	}
	k.counts[id]++
	return k.counts[id]
}

// forgetJob is told that a job began.
func (k *killedLaunches) forgetJob(id job.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.counts, id)
}
