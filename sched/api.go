package sched

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/share"
)

// Instant is a point in time, in nanoseconds since the Unix epoch.
type Instant int64

// Event is something that happened outside the core.
type Event interface{ isEvent() }

// The events.
type (
	// NodeSet adds a node or replaces its description. Work held there stays held.
	NodeSet struct{ Node fleet.Node }
	// NodeRemoved takes a node away for new work.
	NodeRemoved struct {
		Pool string `json:",omitempty"` // empty: of the only node of that name
		Name string
	}
	// Submitted adds a job to the queue. A job that is queued already is replaced.
	// Where the rules of the site reckon priorities, Priority is added to what they
	// make (so it is the negative of its nice), unless it is Fixed.
	Submitted struct {
		Job      job.ID
		Spec     *job.Spec // shared, never written
		Priority int64     // larger goes first
		At       Instant   // breaks ties of priority: earlier goes first; then the smaller number
		Fixed    bool      `json:",omitempty"` // an operator set the priority
		Eligible Instant   `json:",omitempty"` // since when it may be considered, for its age; 0: since now
		Moved    Instant   `json:",omitempty"` // when it was last asked to move; 0: never
	}
	// PolicySet replaces the rules of the site, for what waits and what runs.
	PolicySet struct{ Policy *account.Policy } // shared, never written; nil: none
	// UsageSet tells what was used up to a second (after a restart), for the rules
	// that are set. What they do not know is passed over.
	UsageSet struct {
		At      int64 // Unix seconds
		Entries []fair.Entry
		Since   []fair.Entry `json:",omitempty"` // by jobs that have ended since (Owes)
	}
	// Taught replaces what was learned of what arrives (after a restart, last), where the
	// rules let the core learn from it.
	Taught struct{ Seen share.Memory } // shared, never written
	// Withdrawn takes a job out of the queue.
	Withdrawn struct{ Job job.ID }
	// Blocked keeps a queued job from being considered, for a reason that the core
	// does not judge: held, begin time, dependency, array limit.
	Blocked struct {
		Job job.ID
		Why reason.Reason
	}
	// Unblocked lets it be considered again.
	Unblocked struct{ Job job.ID }
	// Restored tells of a job that holds resources already (after a restart). It
	// takes the job out of the queue if it was there.
	Restored struct {
		Job       job.ID
		Spec      *job.Spec
		Claims    []fleet.Claim
		Until     Instant  // when its time limit ends it; 0: no limit
		Submitted Instant  `json:",omitempty"` // 0: not known
		Began     Instant  // when it was started
		Flavors   []string `json:",omitempty"` // as its Start said
		License   string   `json:",omitempty"` // the same

		Priority int64   // as submitted; who may take its place can depend on it
		Saved    Instant // when it last reported a checkpoint; 0: never
		Stopping bool    // its end has been asked for
		Begun    bool    `json:",omitempty"` // as Begun says
		Waits    bool    `json:",omitempty"` // its pool's own scheduler has not begun it: as after its Start, until Extended says when

		Parked     *Parked       `json:",omitempty"` // it is suspended to make room
		Suspending bool          `json:",omitempty"` // with Stopping: that has been asked for
		GivesWay   bool          `json:",omitempty"` // with Suspending: to one whose turn it is
		Turn       Instant       `json:",omitempty"` // since when it runs without a break; 0: since Began
		Tail       Instant       `json:",omitempty"` // how long those may go on whose place it has, after it
		Moved      Instant       `json:",omitempty"` // as in Submitted
		GoesFor    job.ID        `json:",omitempty"` // it moves, so that this one starts
		Home       []fleet.Claim `json:",omitempty"` // and to here
	}
	// Approved says that moves are to be made that were proposed. They are, in the step
	// that hears it, if the proposal is the same still; else nothing happens.
	Approved struct {
		For    job.ID // as in the Proposal
		Claims []fleet.Claim
		Moves  []Move
	}
	// Stopping says that the end of a running job has been asked for, by whomever: it
	// is still held, and nobody else has to go for what it will free.
	Stopping struct{ Job job.ID }
	// Suspended says that a running job is proved suspended, as a Preempt asked for: others
	// may start where it was, on all but its memory.
	Suspended struct{ Job job.ID }
	// Saved says that a running job has reported a checkpoint: what it did until At is
	// not lost with it.
	Saved struct {
		Job job.ID
		At  Instant
	}
	// Extended changes when a running job's limit ends it.
	Extended struct {
		Job   job.ID
		Until Instant
		Began Instant `json:",omitempty"` // when its pool's own scheduler began it: it is charged from then on; 0: that has not changed
	}
	// Begun says that all of a started job is there, on an engine that can change it: it
	// may be given more from here on, if it is elastic.
	Begun struct {
		Job job.ID
		Not bool `json:",omitempty"` // take that back: it is suspended
	}
	// Added tells of what a running job holds beyond its minimum already (after a
	// restart), of one group. It comes after the job's Restored.
	Added struct {
		Job      job.ID
		Claims   []fleet.Claim
		Began    Instant
		Stopping bool `json:",omitempty"` // it has been asked back
	}
	// Dropped frees what was added to a running job: it is proved gone, or it was not
	// added. The unit is named by any of its nodes.
	Dropped struct {
		Job     job.ID
		Node    string
		Settled bool `json:",omitempty"` // the job is not to grow any more
	}
	// Released frees what a job holds: it is proved gone, or the start was not made.
	// The job is not queued again by it: that takes a Submitted after it.
	Released struct {
		Job   job.ID
		Ended Instant `json:",omitempty"` // until when it is charged for what it used, also if that is long ago; 0: now
	}
)

func (NodeSet) isEvent()     {}
func (NodeRemoved) isEvent() {}
func (Submitted) isEvent()   {}
func (PolicySet) isEvent()   {}
func (UsageSet) isEvent()    {}
func (Taught) isEvent()      {}
func (Withdrawn) isEvent()   {}
func (Blocked) isEvent()     {}
func (Unblocked) isEvent()   {}
func (Restored) isEvent()    {}
func (Extended) isEvent()    {}
func (Released) isEvent()    {}
func (Stopping) isEvent()    {}
func (Saved) isEvent()       {}
func (Suspended) isEvent()   {}
func (Approved) isEvent()    {}
func (Added) isEvent()       {}
func (Begun) isEvent()       {}
func (Dropped) isEvent()     {}

// Events lists one of each kind, for those who write them down.
func Events() []Event {
	return []Event{
		NodeSet{},
		NodeRemoved{},
		Submitted{},
		PolicySet{},
		UsageSet{},
		Taught{},
		Withdrawn{},
		Blocked{},
		Unblocked{},
		Restored{},
		Extended{},
		Released{},
		Stopping{},
		Saved{},
		Suspended{},
		Approved{},
		Begun{},
		Added{},
		Dropped{},
	}
}

// Decision is what the core wants done.
type Decision interface{ isDecision() }

// The decisions.
type (
	// Start admits a whole gang. The core counts the claims as taken from here on.
	// It shares them: they must not be written to.
	Start struct {
		Job     job.ID
		Claims  []fleet.Claim // by group, then in rank order
		Until   Instant       // when its time limit ends it if it starts now; 0: none
		Flavors []string      `json:",omitempty"` // of quotas, in which it is counted; nil: it is in none
		License string        `json:",omitempty"` // which of the alternatives that it asked for it has; empty: it asked for none
	}
	// Preempt asks for the end of a running job, whole, so that another one can start
	// where it is. The core goes on counting it as held until it is Released, and keeps
	// what it frees for the other one.
	Preempt struct {
		Job   job.ID
		For   job.ID
		Mode  string        // account.PreemptRequeue, PreemptCancel, PreemptCheckpoint or PreemptSuspend: then Suspended is awaited
		Grace time.Duration // between the warning and the end; 0: the caller's own
		Home  []fleet.Claim `json:",omitempty"` // it moves: this is kept for it, and it starts here when it is queued again
	}
	// Proposal says which running jobs could move so that one starts that waits, and
	// where to: what an Approved carries out. One takes the place of the other; no
	// Moves: there is none any more.
	Proposal struct {
		For    job.ID        `json:",omitempty"`
		At     Instant       `json:",omitempty"` // when it would start otherwise; 0: nobody knows
		Claims []fleet.Claim `json:",omitempty"` // where it would start
		Moves  []Move        `json:",omitempty"` // by job
	}
	// Resume lets a job go on that made room by being suspended. The core counts all that it
	// holds as taken again.
	Resume struct{ Job job.ID }
	// Grow gives a running job more, for one of its elastic groups: a node, or a
	// subgroup of nodes. The core counts the claims as taken from here on.
	Grow struct {
		Job    job.ID
		Claims []fleet.Claim
	}
	// Shrink asks a running job for a unit that was added to it, so that another one can
	// start there. The core goes on counting it as held until it is Dropped.
	Shrink struct {
		Job   job.ID
		Node  string // the first of the unit
		For   job.ID
		Grace time.Duration // between the warning and the end; 0: the caller's own
	}
	// Wait says that the first reason why a job waits has changed.
	Wait struct {
		Job job.ID
		Why reason.Reason
	}
	// Promise tells the head of the queue when it starts at the latest if every
	// running job uses its whole time limit. At is 0 where a job without a limit
	// stands in the way. No Nodes: the promise is taken back, because a job of
	// higher priority is the head now, or because this one was blocked.
	Promise struct {
		Job   job.ID
		At    Instant
		Nodes []string
	}
	// Used says that what was used has changed and was brought up to date: Usage has
	// what is to be kept for UsageSet.
	Used struct{ At int64 } // Unix seconds
	// Learned says that more was learned of what arrives: Core.Learned has what is to be
	// kept for Taught.
	Learned struct{}
)

func (Learned) isDecision()  {}
func (Used) isDecision()     {}
func (Start) isDecision()    {}
func (Preempt) isDecision()  {}
func (Proposal) isDecision() {}
func (Wait) isDecision()     {}
func (Promise) isDecision()  {}
func (Resume) isDecision()   {}
func (Grow) isDecision()     {}
func (Shrink) isDecision()   {}
