package model

import (
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/store"
)

// Fact is something that happened. Its String is a sentence for the story of a run.
type Fact interface {
	String() string
	tellModel(m *Model)
}

// Facts of the world, as it truly is, whoever knows it.
type (
	// Now moves the clock of the story.
	Now struct{ At time.Time }

	// Jumped: the wall clock of the servers was set.
	Jumped struct{ By time.Duration }

	// Machine is a node with its capacity, as the engine would tell it now. State is
	// for the story: who knows it is judged by Sight.Nodes.
	Machine struct{ Node fleet.Node }

	// Launched: a launch took effect at the engine, whether or not its caller hears
	// so. It is told once for each time that the engine really begins to set up an
	// attempt, not for a repeated call that changes nothing.
	Launched struct {
		Ref    engine.Ref
		Job    job.ID
		Claims []fleet.Claim
	}

	// Began: commands of an attempt begin to run on a node. The engine's barrier
	// opens for all nodes of an attempt: tell one Began for each node, and after the
	// last one Barrier.
	Began struct {
		Ref  engine.Ref
		Node string
	}

	// Barrier: the start of an attempt is complete; every Began of it was told.
	Barrier struct{ Ref engine.Ref }

	// Failed: a launch failed part-way; from now on nothing of it may begin, and what
	// was set up is to be taken away (Vanished).
	Failed struct {
		Ref  engine.Ref
		Node string // that could not be made ready
	}

	// Vanished: nothing of an attempt lives on a node any more: neither commands nor
	// what was set up for them. Node "" means every node.
	Vanished struct {
		Ref  engine.Ref
		Node string
	}

	// Paused: the processes of an attempt are suspended, or go on.
	Paused struct {
		Ref engine.Ref
		On  bool
	}

	// Amnesia: the engine started again without its memory. What had lived under it
	// is gone (tell Vanished of it).
	Amnesia struct{}
)

// Facts of the store, told by a wrapper around it.
type (
	// Led: the store gave the lead to somebody.
	Led struct {
		Epoch uint64
		Who   string
	}

	// Appending: a leader asks for records to be written; nothing is durable yet.
	Appending struct {
		Epoch   uint64
		Records []store.Record
	}

	// Durable: records are in the journal, with their Seq, whether or not the leader
	// hears so.
	Durable struct {
		Epoch   uint64
		Records []store.Record
	}

	// Appended: the leader's Append returned. Last is 0 with an error.
	Appended struct {
		Epoch uint64
		Last  uint64
		Err   error
	}
)

// Facts of the control plane.
type (
	// Opened: a control plane took up its work with an epoch; its first Sight is of
	// what it read from the store.
	Opened struct{ Epoch uint64 }

	// Closed: the control plane of an epoch has ended: it was killed, closed itself,
	// or noticed that it was followed. What it had in memory is no more.
	Closed struct {
		Epoch uint64
		Why   string
	}

	// Called: a call of a leader to the engine takes effect ("launch", "stop",
	// "forget", "signal", "suspend", "resume").
	Called struct {
		Epoch uint64
		Led   uint64 // the newest epoch when it was sent; 0: later than its own
		Verb  string
		Ref   engine.Ref
	}

	// Heard: a leader gets a word of the engine about an attempt: a report of Watch,
	// List or Inspect; or with a nil Report, that the engine is certain to have
	// nothing of it (fault.NotFound, missing from a List, a launch that was refused
	// for good). No answer is no word: tell nothing.
	Heard struct {
		Epoch  uint64
		Ref    engine.Ref
		Report *engine.Report
		// Refused: with a nil Report, that a launch was answered with a definite error;
		// what there is of the attempt may be ended, and nothing is proved.
		Refused bool
		// Aside: it is an answer to a question about something else, on which the leader
		// may act, or wait for the report that comes by itself.
		Aside bool
	}

	// Asked: somebody asks the control plane for something. N is unlike every other.
	Asked struct {
		N       int
		Request Request
	}

	// Answered: a request was answered. First is the number that a submission got;
	// Errs is, for a change of several jobs, what was said of each.
	Answered struct {
		N     int
		First job.ID
		Err   error
		Errs  []error
	}
)

// Request is what was asked for.
type Request struct {
	Epoch uint64 // of the leader that was asked
	Verb  Verb
	Spec  *job.Spec // Submit
	Jobs  []job.ID  // those that are to change
	Nodes []string  // Drain, Undrain
	Limit uint32    // SetLimit: the array's new limit of running tasks, 0: none
	Text  string    // Rule, SetController: the document
}

// Verb says what is asked for.
type Verb string

// The verbs. Other is a change that the model does not follow in detail.
const (
	Submit   Verb = "submit"
	Cancel   Verb = "cancel"
	Hold     Verb = "hold"
	Release  Verb = "release"
	Requeue  Verb = "requeue"
	Suspend  Verb = "suspend"
	Resume   Verb = "resume"
	SetLimit Verb = "set-limit"
	Drain    Verb = "drain"
	Undrain  Verb = "undrain"
	Rule     Verb = "rule"

	SetController Verb = "set-controller"
	Other         Verb = "other"
)

// Sight is what a leader publishes at one moment: every job that it has in memory,
// and every node. Idle says that it waits for messages: nothing that it was told is
// still being worked on, and no write is outstanding.
type Sight struct {
	Epoch uint64
	Idle  bool
	Jobs  []Job
	Nodes []Node
	Used  map[string]float64 // by account: seconds that its jobs ran; nil: nobody counts them

	Controllers map[string]string // documents by name; nil: nobody looked
}

// Job is a job as it is published.
type Job struct {
	ID      job.ID
	State   job.State
	Flags   job.Flags
	Attempt uint32
	Ref     engine.Ref // zero: it holds nothing
	Claims  []fleet.Claim
	Why     reason.Reason // the first reason why it waits
	Array   job.ID        // 0: no array
	Limit   uint32        // of running tasks of the array
}

// Node is a node as it is published, with what is held on it.
type Node struct {
	Name  string
	State fleet.NodeState
	Used  resource.Vector
	Held  map[int][]job.ID // device → the jobs that hold it
}

// Facts about a whole run.
type (
	// Twice: the same state and the same events were given to the control plane
	// twice. What names them; A and B are the two accounts of what it did, alike
	// line by line if all is well.
	Twice struct {
		What string
		A, B []string
	}

	// Rested is said again and again after the faults: minutes went by without one since it
	// was said before, so what differs from the journal twice stays so.
	Rested struct{}

	// Settled ends a run: every fault was taken back, the engine let end whatever can
	// end, time went on until nothing changed any more. Whoever is not final by now
	// must have a reason to wait, or to be held, that stands.
	Settled struct{ Sight Sight }
)
