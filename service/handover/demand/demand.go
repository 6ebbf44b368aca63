// Package demand decides which machines go from one pool to another because work waits there: the
// policy of hand-overs (handover: of the site's rules).
//
// Decide is a function of its input. It has no clock, no I/O and no memory but what it returns. It moves
// nothing itself: its caller hands each machine over by the steps of docs/explanation/design/0015-one-fleet.md.
//
// # Model
//
// Everything is counted in units, GPUs where any machine has some, else CPUs, and in unit-seconds. A
// pool lacks machines if work waits there that fits into nothing of it that is free, and that would not
// start soon anyway. What a machine is worth to a pool is the work that it lets start earlier while it
// stays there (HandoverPool.Stay), times the pool's weight. What a move costs is what the pool that gives
// the machine loses by the same measure, or would lose if it needs again what it needed at most within its
// Stay; what is left idle during the drain, if somebody there could use it; the work of jobs that are
// requeued; and HandoverPool.Cost.
//
// # Guarantees
//
//   - No move takes a pool below its minimum or above its maximum, with what is on the way counted.
//   - No move costs more than it gains, but to bring a pool to its minimum.
//   - A machine that came to a pool stays for its Stay. A pool gets a machine only after it has lacked
//     some for its After, and a pool that gave one begins that time anew.
//   - Machines go only between pools that exchange them, to pools that have them as nodes, and never
//     while they are on the way already. A machine whose engine does not answer is not moved, and one of
//     which a hand-over was walked back is not tried again for the length of a drain.
//   - While a machine is on the way from one pool to another, none goes back. No pool
//     gets and gives machines in one decision.
//   - The same input gives the same moves, in whatever order machines are listed.
//
// Files: demand.go has the input and the output, decide.go the decision, worth.go what machines are worth
// to a pool, drain.go what it costs to empty one, waits.go an estimate of when waiting work would start.
package demand

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
)

// StepsTake is how long a hand-over takes beside the drain: the fence, the proof, the admission and the
// check.
const StepsTake = time.Minute

// Input is all that a decision depends on. Nothing of it is written to.
type Input struct {
	Now      time.Time
	Rules    account.Handover
	Unit     string // what units are, for people: "GPU" or "CPU"
	Machines []Machine
	Waiting  []Want
	Memory   Memory // of the last decision; zero: the first one since the server's start
}

// Machine is a machine with what runs on it.
type Machine struct {
	Name  string
	Pool  string    // its owner
	To    string    // where a hand-over under way brings it; empty: none is under way
	Could []string  // pools that have it as a node
	Units int       // GPUs, or CPUs where no machine has GPUs
	Came  time.Time // when it came to its pool; zero: it has not moved since it is known
	Tried time.Time // when a hand-over of it was walked back; zero: none was
	Away  bool      // its engine does not answer for it, or somebody drained it
	Runs  []Run
}

// Run is work on a machine.
type Run struct {
	Job     job.ID    // 0: nobody knows
	Units   int       // on this machine
	Ends    time.Time // expected; zero: it has no end
	Lost    int64     // unit-seconds of work, on all of its machines, that a requeue now loses: since its last checkpoint
	Requeue bool      // it may be requeued
	Replica bool      // of a service: another one is started elsewhere before it ends
}

// Want is work that waits for machines, in the order in which it is tried. What waits for something
// else (a dependency, a limit, a person) does not belong here.
type Want struct {
	Pool  string
	Units int           // of each
	Count int           // of such jobs
	Wait  time.Duration // until it starts if no machine moves; negative: nobody knows
	Takes time.Duration // how long it holds them; 0: it has no end
	// Service is the service that waits for replicas; empty: it is a job. Held is how many of its
	// requests wait.
	Service string
	Held    int
}

// Memory is what decisions remember of earlier ones. It is lost with a restart of the server: then the
// time that a pool must lack machines begins anew.
type Memory struct {
	Lacks map[string]time.Time // since when a pool lacks machines
	Needs map[string][]Need    // what a pool needed within its Stay: falling numbers in the order of time
}

// Need is how many units a pool had in use and lacked, at a time.
type Need struct {
	At    time.Time
	Units int
}

// Output is a decision.
type Output struct {
	Moves  []Move
	Pools  []Standing // of each pool of the rules, in their order
	Next   time.Time  // ask again then, if nothing changes before; zero: when something changes
	Memory Memory
}

// Move is a machine to hand over.
type Move struct {
	Machine  string
	From, To string
	Drain    time.Duration // how long its drain is expected to take
	Until    time.Time     // when the drain is over at the latest
	Requeue  bool          // what has not ended by then is requeued; else the hand-over is walked back
	Forced   bool          // something there is expected to be requeued
	// Gain and Cost are unit-seconds. Moves of a decision that belong together share the gain evenly.
	Gain, Cost int64
	Reason     string // in words and numbers, for people
}

// Standing is how a pool stands before the moves of the decision.
type Standing struct {
	Pool     string
	Machines int // with those on the way to it, without those on the way from it
	Idle     int // of its machines, with nothing on them
	Lacks    int // units of waiting work for which it has no room
	Since    time.Time
	Why      string // it lacks some and gets nothing; empty: it lacks nothing, or gets a machine
}
