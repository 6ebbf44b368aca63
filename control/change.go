package control

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
)

// Event is one durable change, as watchers are told of it. Seq is the number of
// its journal record; every record makes one event at most.
type Event struct {
	Seq     uint64
	At      time.Time
	Kind    string // EventSubmitted …
	Job     job.ID // 0: it concerns no job
	Name    string // how the job is shown: "7", "7_3"
	Count   int    // EventSubmitted: tasks of the array, numbered from Job; 0: no array
	User    string // the job's owner
	State   string // of the job after the event
	Attempt uint32
	Exit    *job.ExitCode // EventEnded
	Nodes   []string      // EventAllocated; or the nodes that were drained
	By      string        // who asked for it; empty: the control plane
	Message string
}

// The kinds of event.
const (
	EventSubmitted = "submitted"
	EventAllocated = "allocated"
	EventStarted   = "started"
	EventEnded     = "ended"
	EventRequeued  = "requeued"
	EventCancelled = "cancelled"
	EventHeld      = "held"
	EventReleased  = "released"
	EventUpdated   = "updated"
	EventSuspended = "suspended"
	EventResumed   = "resumed"
	EventUncertain = "uncertain"
	EventCertain   = "certain"
	EventDeadline  = "deadline"
	EventDrained   = "node-drained"
	EventUndrained = "node-resumed"
)

// Events waits until there are events after a number and returns some of them in
// order, with the number to go on from. gap says that the journal no longer has all
// of what was missed: read the whole state anew. The error is the context's, or of
// a control plane that has ended.
func (c *Control) Events(context.Context, uint64) (evs []Event, last uint64, gap bool, err error) {
	return nil, 0, false, fault.New(fault.Unsupported, "events are not built yet")
}

// LastEvent is the number of the newest event: taken before Scan, Events after it
// has every change that Scan may not have seen.
func (c *Control) LastEvent() uint64 { return 0 }
