package model

import (
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// node is a machine.
type node struct {
	fleet.Node
	drained uint64 // Seq of the record that drained it; 0: it is not drained
	set     uint64 // Seq of the last record about that
}

// work is a job as the journal tells it.
type work struct {
	id      job.ID
	name    string    // of its specification
	spec    *job.Spec // without what only this job has
	array   *array    // nil: none
	part    *job.Part // of a controller's work; nil: none
	depends bool

	seen                     uint64 // the last Sight that showed it
	state                    job.State
	attempt                  uint32
	held                     *attempt   // whose allocation it holds; nil: none
	added                    []*attempt // to that
	settled                  bool       // it is given no more
	flags                    job.Flags
	cancel, requeue, expired bool            // asked for, of the present attempt
	taken                    string          // how it is to make room, as the present attempt; "": it is not
	awaits                   bool            // others were asked to make room for it
	asleep                   bool            // it makes room by being suspended, and somebody suspended it
	holdAfter                bool            // the requeue asked for a hold
	retried                  int             // retries so far
	asked                    map[Verb]uint64 // Seq of the last record of each
	left                     uint64          // Seq of the record with which it left a final state
	changed                  uint64          // Seq of the record that changed its state last
	doubted                  bool            // the journal said once that nobody could tell whether it lives
}

// noteVerb keeps when a verb was last journaled of the job.
func (w *work) noteVerb(v Verb, seq uint64) {
	if w.asked == nil {
		w.asked = map[Verb]uint64{}
	}
	w.asked[v] = seq
}

// isEnding reports whether the end of the present attempt was asked for.
func (w *work) isEnding() bool { return w.cancel || w.requeue || w.expired || w.isPreempted() }

// isPreempted reports whether it was asked to end so that another one can start.
func (w *work) isPreempted() bool { return w.taken != "" && w.taken != account.PreemptSuspend }

// requeuesAfterPreempt reports whether it makes room and waits again then.
func (w *work) requeuesAfterPreempt() bool {
	return w.isPreempted() && w.taken != account.PreemptCancel
}

// isHeld reports whether a hold keeps it.
func (w *work) isHeld() bool { return w.flags&job.Held != 0 }

// array is what the tasks of an array have in common.
type array struct {
	first job.ID
	limit uint32
	tasks []*work
}

// openTasks counts the tasks that hold something.
func (a *array) openTasks() int {
	n := 0
	for _, w := range a.tasks {
		if w.held != nil {
			n++
		}
	}
	return n
}

// attempt is one execution of a job: what the journal says of it, what truly lives,
// and what was heard.
type attempt struct {
	ref    engine.Ref
	job    *work // nil: the journal never had it
	claims []fleet.Claim
	epoch  uint64    // of the leader that made it
	adds   *attempt  // of the same job, to which this one was added; nil: it is the job's own
	back   bool      // it was asked back
	waited bool      // it ended before what was added to it
	opened time.Time // its barrier, as the engine says

	journaled bool      // the journal granted it
	freed     bool      // the journal says that it ended
	started   bool      // the journal says that it began
	ran       time.Time // when the journal did
	uncertain bool      // the journal says so
	parked    bool      // the journal lends its CPUs and devices

	launched bool
	lost     bool     // the engine forgot it with all it knew
	ghost    bool     // it had begun before that and was launched again: nobody could know
	failed   bool     // its launch failed part-way
	begun    bool     // its barrier was opened
	began    []string // nodes on which its commands ever began
	lives    []string // nodes on which something of it lives
	paused   bool     // its processes are suspended
	odd      uint64   // changed of its job when it did not do as that says, at the last Rested; 0: it did
	astray   bool     // a leader that was followed suspended it or let it go on, after the last word of the present one: that one cannot know

	heard *engine.Report // the last word with a proof of its end
	provedTo,
	refusedTo,
	asideTo, // as provedTo, in an answer that need not be acted on
	unknownTo uint64 // the newest leader that has the proof, or heard that the engine has nothing
}

// neverBegan reports whether a report says that nothing of an attempt began, and that is so, or
// nobody could know better: the engine forgot it with all it knew, and the journal has no start.
func (a *attempt) neverBegan(r *engine.Report) bool {
	return r.Cause == engine.Unready && (!a.begun || a.lost && !a.started)
}

// isHeld reports whether the journal holds its allocation.
func (a *attempt) isHeld() bool { return a.journaled && !a.freed }

// gangAttempt is the attempt to which this one belongs: its own, or that to which it was added.
func (a *attempt) gangAttempt() *attempt {
	if a.adds != nil {
		return a.adds
	}
	return a
}

// allClaims is what a job holds.
func (w *work) allClaims() (out []fleet.Claim) {
	out = append(out, w.held.claims...)
	for _, a := range w.added {
		out = append(out, a.claims...)
	}
	return out
}

// nodeNames are those that it claims, each once.
func (a *attempt) nodeNames() []string {
	var out []string
	for _, c := range a.claims {
		if !slices.Contains(out, c.Node) {
			out = append(out, c.Node)
		}
	}
	return out
}

// leader is a control plane.
type leader struct {
	epoch   uint64
	open    bool
	looked  bool // it was seen once
	writing bool // an Append is outstanding
	lags    bool // the journal has what it was not told of
	states  map[string]fleet.NodeState
	suspect []suspect
}

// suspect is a grant on a node that its leader had seen not to be up.
type suspect struct {
	ref  engine.Ref
	job  job.ID
	node string
}

// attemptOf finds or begins the account of an attempt.
func (m *Model) attemptOf(ref engine.Ref) *attempt {
	a := m.claims[ref]
	if a == nil {
		a = &attempt{ref: ref}
		m.claims[ref] = a
	}
	return a
}

// keepAttempt has an attempt among those that matter.
func (m *Model) keepAttempt(a *attempt) {
	if !slices.Contains(m.live, a) {
		m.live = append(m.live, a)
	}
}

// dropFinished takes out what is neither held nor lives.
func (m *Model) dropFinished(a *attempt) {
	if !a.isHeld() && len(a.lives) == 0 {
		m.live = slices.DeleteFunc(m.live, func(x *attempt) bool { return x == a })
	}
}

// leaderOf finds or begins the account of a leader.
func (m *Model) leaderOf(epoch uint64) *leader {
	l := m.leaders[epoch]
	if l == nil {
		l = &leader{epoch: epoch}
		m.leaders[epoch] = l
	}
	return l
}

// fullName names an attempt with its job.
func (a *attempt) fullName() string {
	if a.job == nil {
		return "attempt " + a.ref.String() + ", which no job has"
	}
	if a.adds != nil {
		return "addition " + a.ref.String() + " to job " + a.job.id.String()
	}
	return "attempt " + a.ref.String() + " of job " + a.job.id.String()
}
