package sched

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/class"
)

// Wishes: what a job would rather have and gives up after a while (sbatch --switches,
// Slurm's topology.html; job.Spec.Forms). A job with wishes passes through stages; at each
// it stands in another class, as a job that asks for something else. The clock of a job
// starts when it could first be considered, and again when it is released from a hold,
// in whole seconds as Slurm's does.

// constraintTimers lists the jobs that give something up at some time.
type constraintTimers struct {
	next expiryHeap
	due  map[job.ID]Instant // of those listed; what the heap has besides is out of date
}

type constraintExpiry struct {
	at  Instant
	job job.ID
}

type expiryHeap []constraintExpiry

// longestWait is how long the policy lets jobs wait for switches.
func longestWait(p *account.Policy) time.Duration {
	if p == nil || p.Topology.SwitchWait == 0 {
		return job.DefaultSwitchWait
	}
	return max(0, time.Duration(p.Topology.SwitchWait))
}

// shapeOf is what a job asks for at its stage.
func (c *Core) shapeOf(e *queuedJob) *class.Shape {
	if !e.spec.Wishful() {
		return c.shapes.Shape(e.spec)
	}
	return c.shapes.Staged(e.spec, int(e.stage))
}

// stageOf is the stage of a job, and when the next one begins; 0: it is the last, or
// the clock stands.
func (c *Core) stageOf(e *queuedJob) (stage uint8, next Instant) {
	after := c.shapes.Stages(e.spec)
	if e.eligible == 0 || len(after) < 2 {
		return 0, 0
	}
	for i, wait := range after[1:] {
		begins := addDuration(atSecond(e.eligible), wait)
		if begins > c.clock.now {
			return uint8(i), begins
		}
	}
	return uint8(len(after) - 1), 0
}

// waitedFor is for how long a job's clock has run.
func waitedFor(e *queuedJob, now Instant) time.Duration {
	if e.eligible == 0 {
		return 0
	}
	return max(0, time.Duration(now-atSecond(e.eligible)))
}

// scheduleStage lists a job for its next stage.
func (c *Core) scheduleStage(e *queuedJob, next Instant) {
	p := &c.constraints
	switch {
	case next == 0:
		delete(p.due, e.id)
	case p.due[e.id] != next:
		if p.due == nil {
			p.due = map[job.ID]Instant{}
		}
		p.due[e.id] = next
		heap.Push(&p.next, constraintExpiry{next, e.id})
	}
}

// moveToStage moves a job to the class of the stage that it is at.
func (c *Core) moveToStage(e *queuedJob) {
	stage, next := c.stageOf(e)
	c.scheduleStage(e, next)
	if stage == e.stage {
		return
	}
	c.planDirty = true // what was planned for it was for what it asked then
	stands := !e.blocked && e.nominee == nil
	if stands {
		c.removeJob(e)
	}
	old := e.class
	if old.leader == e {
		old.leader = nil // what it waits for is told in its new class
	}
	e.stage = stage
	e.class = c.classOf(e)
	c.leaveClass(old)
	if stands {
		c.enqueueJob(e)
	}
}

// giveUpWishes lets go of wishes whose time is over.
func (c *Core) giveUpWishes(now Instant) {
	for due := c.constraints.nextDue(); due != 0 && due <= now; due = c.constraints.nextDue() {
		c.moveToStage(c.queue.jobs[c.constraints.next[0].job])
	}
}

// nextDue is when the next job gives something up; 0: none does.
func (p *constraintTimers) nextDue() Instant {
	for len(p.next) > 0 && p.due[p.next[0].job] != p.next[0].at {
		heap.Pop(&p.next)
	}
	if len(p.next) == 0 {
		return 0
	}
	return p.next[0].at
}

// insistReason says what a job waits for that something else will do for later, and from
// when on; Code None: nothing.
func (c *Core) insistReason(e *queuedJob) reason.Reason {
	_, next := c.stageOf(e)
	if next == 0 {
		return reason.Reason{}
	}
	return reason.Reason{Code: reason.Wish, Want: e.spec.Insists(int(e.stage), longestWait(c.policy)), Until: floorSeconds(next)}
}

// checkWishes looks for jobs that are at another stage than they should be, or whose
// next one nobody waits for.
func (c *Core) checkWishes() error {
	for id, e := range c.queue.jobs {
		stage, next := c.stageOf(e)
		if stage != e.stage {
			return fmt.Errorf("job %d is at stage %d of its wishes, it should be at %d", id, e.stage, stage)
		}
		if due := c.constraints.due[id]; due != next {
			return fmt.Errorf("job %d gives something up at %d and is listed for %d", id, next, due)
		}
	}
	if len(c.constraints.due) > len(c.queue.jobs) {
		return fmt.Errorf("%d jobs give something up, %d are queued", len(c.constraints.due), len(c.queue.jobs))
	}
	return nil
}

func (h expiryHeap) Len() int { return len(h) }
func (h expiryHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].job < h[j].job
}
func (h expiryHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *expiryHeap) Push(x any)   { *h = append(*h, x.(constraintExpiry)) }

func (h *expiryHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
