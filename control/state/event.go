package state

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/share"
	"github.com/coxswain-sched/coxswain/store"
)

// Event is one durable change, as watchers are told of it. Seq is the number of its
// journal record: every record makes one event.
type Event struct {
	Seq     uint64
	At      time.Time
	Kind    string // EventSubmitted …
	Job     job.ID // 0: it concerns no job
	Name    string // how the job is shown: "7", "7_3"
	Count   int    // EventSubmitted: tasks of the array, numbered from Job; 0: no array
	User    string // the job's owner; empty: nobody knows any more
	State   string // of the job after the event; empty: the journal of an old version does not say
	Attempt uint32
	Exit    *job.ExitCode // EventEnded, EventRequeued
	Nodes   []string      // EventAllocated; or the nodes that were drained
	By      string        // who asked for it; empty: the control plane
	Message string
}

// The kinds of event. Those about tokens are for administrators.
const (
	EventSubmitted = "submitted"
	EventAllocated = "allocated"
	EventStarted   = "started"
	EventEnded     = "ended"    // an attempt, and the job with it
	EventRequeued  = "requeued" // an attempt ended and the job waits again, or that was asked for
	EventCancelled = "cancelled"
	EventPreempted = "preempted" // asked to make room for another job
	EventSaved     = "saved"     // it reported a checkpoint
	EventGrown     = "grown"     // it was given more while it runs
	EventJoined    = "joined"    // what it was given runs
	EventAsked     = "shrinking" // a part of that was asked back
	EventShrunk    = "shrunk"    // a part of that has gone
	EventHeld      = "held"
	EventReleased  = "released"
	EventUpdated   = "updated"
	EventMoved     = "moved" // in the queue
	EventPoolMoved = "moved-to-pool"
	EventSuspended = "suspended"
	EventResumed   = "resumed"
	EventUncertain = "uncertain"
	EventCertain   = "certain"
	EventDeadline  = "expired" // the deadline or a lowered limit has come
	EventDrained   = "node-drained"
	EventUndrained = "node-resumed"
	EventFenced    = "node-fenced"   // a check failed: the node, or a device of it, gets no new work
	EventUnfenced  = "node-unfenced" // its checks pass again
	EventToken     = "token-made"
	EventRevoked   = "token-revoked"
	EventPool      = "pool-added"
	EventPoolGone  = "pool-removed"
	EventPolicy    = "policy-set"        // the site's rules
	EventUsage     = "usage-kept"        // what accounts and users have used
	EventLearned   = "placement-learned" // what usually arrives

	EventController     = "controller-set"
	EventControllerGone = "controller-gone"
	EventOwner          = "machine-owner" // who owns machines, or how far a hand-over is
)

// EventOfRecord makes the event of a record that was just applied.
func (s *State) EventOfRecord(r *store.Record, staged any) (Event, error) {
	return EventOf(r, staged, func(id job.ID) (name, user string) {
		if e := s.Jobs[id]; e != nil {
			return e.Name(), e.Shared.Spec.Owner.User
		}
		return id.String(), ""
	})
}

// EventOf makes the event of a record: the same one whether it was applied just now
// or is read out of the journal later.
func EventOf(r *store.Record, staged any, who func(job.ID) (name, user string)) (Event, error) {
	ev := Event{Seq: r.Seq, At: r.At, Job: job.ID(r.Job), By: r.By.Name}
	if f := eventMakers[r.Kind]; f == nil {
		ev.Kind = r.Kind
	} else if err := f(&ev, r, staged); err != nil {
		return ev, err
	}
	if ev.Job != 0 && ev.Name == "" {
		var user string
		ev.Name, user = who(ev.Job)
		if ev.User == "" {
			ev.User = user
		}
	}
	return ev, nil
}

// payloadEvent is the function that fills an event from a payload.
func payloadEvent[T any](f func(*Event, *T)) func(*Event, *store.Record, any) error {
	return func(ev *Event, r *store.Record, staged any) error {
		v, err := payloadOf[T](r, staged)
		if err == nil {
			f(ev, &v)
		}
		return err
	}
}

var eventMakers = map[string]func(*Event, *store.Record, any) error{
	KindSubmitted: submittedEvent,
	KindHeld: payloadEvent(func(ev *Event, v *Held) {
		ev.Kind, ev.State, ev.Attempt = EventAllocated, job.Running.String(), v.Allocation.Attempt
		if IsDelegated(v.Allocation.Claims) {
			ev.State, ev.Message = job.Pending.String(), "handed over to pool "+v.Allocation.Pool
			return
		}
		for i, c := range v.Allocation.Claims {
			if i == 0 || c.Node != v.Allocation.Claims[i-1].Node {
				ev.Nodes = append(ev.Nodes, c.Node)
			}
		}
	}),
	KindStarted: payloadEvent(func(ev *Event, v *Started) {
		ev.Kind, ev.State, ev.Attempt, ev.Nodes = EventStarted, job.Running.String(), v.Ref.Attempt, v.Nodes
	}),
	KindEnded: payloadEvent(func(ev *Event, v *Ended) {
		ev.Kind, ev.State, ev.Attempt, ev.Message = EventEnded, v.State.String(), v.Ref.Attempt, v.Report.Message
		if v.State == job.Pending {
			ev.Kind = EventRequeued
		}
		if v.Retried > 0 {
			ev.Message = strings.TrimPrefix(fmt.Sprintf("%s; retry %d", ev.Message, v.Retried), "; ")
		}
		ev.Exit = &v.Report.Exit
	}),
	KindUncertain: payloadEvent(func(ev *Event, v *Uncertain) {
		ev.Kind, ev.State, ev.Attempt, ev.Message = EventUncertain, job.Running.String(), v.Ref.Attempt, v.Message
		if !v.Uncertain {
			ev.Kind = EventCertain
		}
	}),
	KindCancel: payloadEvent(func(ev *Event, v *Cancel) {
		ev.Kind, ev.Message = EventCancelled, v.Message
		ev.setState(v.State, v.By)
	}),
	KindHold: payloadEvent(func(ev *Event, v *Hold) {
		ev.Kind = EventReleased
		if v.Held {
			ev.Kind = EventHeld
		}
		ev.setState(v.State, v.By)
	}),
	KindRequeue: payloadEvent(func(ev *Event, v *Requeue) {
		ev.Kind = EventRequeued
		ev.setState(v.State, v.By)
	}),
	KindPreempted: payloadEvent(func(ev *Event, v *Preempted) {
		ev.Kind, ev.Message = EventPreempted, v.Message()
		ev.setState(v.State, "")
	}),
	KindAdded: payloadEvent(func(ev *Event, v *Added) {
		ev.Kind, ev.Attempt, ev.Nodes = EventGrown, v.Allocation.Attempt, nodesOf(v.Allocation.Claims)
		ev.setState(v.State, "")
	}),
	KindJoined: payloadEvent(func(ev *Event, v *Joined) {
		ev.Kind, ev.Attempt = EventJoined, v.Ref.Attempt
		ev.setState(v.State, "")
	}),
	KindAsked: payloadEvent(func(ev *Event, v *AskedBack) {
		ev.Kind, ev.Attempt, ev.Message = EventAsked, v.Ref.Attempt, v.Message()
		ev.setState(v.State, "")
	}),
	KindDropped: payloadEvent(func(ev *Event, v *Dropped) {
		ev.Kind, ev.Attempt, ev.Message = EventShrunk, v.Ref.Attempt, v.Message
		ev.setState(v.State, "")
	}),
	KindSaved: payloadEvent(func(ev *Event, v *Saved) {
		ev.Kind = EventSaved
		ev.setState(v.State, "")
	}),
	KindExpired: payloadEvent(func(ev *Event, v *Expired) {
		ev.Kind, ev.State = EventDeadline, v.State.String()
		ev.setState(v.After, "")
	}),
	KindSuspend: payloadEvent(func(ev *Event, v *Suspend) {
		ev.Kind = EventResumed
		if v.On {
			ev.Kind = EventSuspended
		} else if v.State != nil && *v.State == job.Suspended {
			ev.Message = goesOnLater
			if v.Parked {
				ev.Message = staysSuspended
			}
		}
		ev.setState(v.State, "")
	}),
	KindUpdate: payloadEvent(func(ev *Event, v *Update) {
		ev.Kind = EventUpdated
		for i, f := range v.Fields {
			if i > 0 {
				ev.Message += ", "
			}
			ev.Message += f
		}
		ev.setState(v.State, "")
	}),
	KindTop: payloadEvent(func(ev *Event, v *QueueMoved) {
		ev.Kind = EventMoved
		ev.setState(v.State, "")
	}),
	KindPoolMove: payloadEvent(func(ev *Event, v *PoolMove) {
		ev.Kind, ev.Message = EventPoolMoved, v.From+" to "+v.To+": "+v.Why
		if v.Undone {
			ev.Message = v.From + " to " + v.To + " is given up: " + v.Why
		}
		ev.setState(v.State, "")
	}),
	KindNodes: payloadEvent(func(ev *Event, v *NodesSet) {
		ev.Kind, ev.Nodes, ev.Message = EventUndrained, v.Nodes, v.Reason
		if v.Drain {
			ev.Kind = EventDrained
		}
	}),
	KindHealth:         payloadEvent(nodeHealthEvent),
	KindUsage:          payloadEvent(func(ev *Event, _ *Usage) { ev.Kind = EventUsage }),
	KindLearned:        payloadEvent(func(ev *Event, _ *share.Memory) { ev.Kind = EventLearned }),
	KindToken:          payloadEvent(func(ev *Event, v *Token) { ev.Kind, ev.User, ev.Message = EventToken, v.Name, v.ID }),
	KindRevoked:        payloadEvent(func(ev *Event, v *Revoked) { ev.Kind, ev.Message = EventRevoked, v.ID }),
	KindPool:           payloadEvent(func(ev *Event, v *PoolSpec) { ev.Kind, ev.Message = EventPool, v.Name+", engine "+v.Engine }),
	KindPoolGone:       payloadEvent(func(ev *Event, v *PoolGone) { ev.Kind, ev.Message = EventPoolGone, v.Name }),
	KindController:     payloadEvent(func(ev *Event, v *Controller) { ev.Kind, ev.User, ev.Message = EventController, v.Owner.User, v.Name }),
	KindControllerGone: payloadEvent(func(ev *Event, v *ControllerGone) { ev.Kind, ev.Message = EventControllerGone, v.Name }),
	KindOwner:          payloadEvent(func(ev *Event, v *OwnersSet) { ev.Kind, ev.Nodes, ev.Message = EventOwner, v.machines(), v.message() }),
	KindPolicy: payloadEvent(func(ev *Event, v *Policy) {
		ev.Kind, ev.Message = EventPolicy, "revision "+strconv.FormatUint(v.Revision, 10)
	}),
}

// What is said of a job that makes room by being suspended, and that somebody suspended too.
const (
	goesOnLater    = "it goes on when what it holds is free again"
	staysSuspended = "it has its place again, and stays suspended until somebody resumes it"
)

// setState notes a state, and who asked where a journal of the first version says so.
func (ev *Event) setState(s *job.State, by string) {
	if s != nil {
		ev.State = s.String()
	}
	if ev.By == "" {
		ev.By = by
	}
}

func submittedEvent(ev *Event, r *store.Record, staged any) error {
	ev.Kind, ev.State = EventSubmitted, job.Pending.String()
	if a, ok := staged.(*AcceptedSubmission); ok {
		ev.setSubmitted(a.First, a.Shared.Spec.Owner.User, a.OwnDelta.Array)
		return nil
	}
	v, err := payloadOf[submitted](r, nil)
	if err != nil {
		return err
	}
	var spec struct {
		Owner job.Owner      `json:"owner"`
		Array *job.ArraySpec `json:"array"`
	}
	if err := json.Unmarshal(v.Spec, &spec); err != nil {
		return err
	}
	if v.Own != nil {
		spec.Array = v.Own.Array
	}
	ev.setSubmitted(v.First, spec.Owner.User, spec.Array)
	return nil
}

func (ev *Event) setSubmitted(first job.ID, user string, array *job.ArraySpec) {
	ev.Name, ev.User = first.String(), user
	if array != nil {
		ev.Count = len(array.Indices)
	}
}
