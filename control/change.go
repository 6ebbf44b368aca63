package control

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
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
	EventSuspended = "suspended"
	EventResumed   = "resumed"
	EventUncertain = "uncertain"
	EventCertain   = "certain"
	EventDeadline  = "expired" // the deadline or a lowered limit has come
	EventDrained   = "node-drained"
	EventUndrained = "node-resumed"
	EventToken     = "token-made"
	EventRevoked   = "token-revoked"
	EventPool      = "pool-added"
	EventPoolGone  = "pool-removed"
	EventPolicy    = "policy-set"        // the site's rules
	EventUsage     = "usage-kept"        // what accounts and users have used
	EventLearned   = "placement-learned" // what usually arrives
)

// eventsAtOnce bounds how much of the journal one call of Events reads.
const eventsAtOnce = 1000

// Events waits until there are events after a number and returns some of them in
// order, with the number to go on from. gap says that the journal no longer has all
// of what was missed: read the whole state anew. The error is the context's, or of
// a control plane that has ended.
func (c *Control) Events(ctx context.Context, after uint64) (evs []Event, last uint64, gap bool, err error) {
	if newest := c.events.Last(); after > newest {
		return nil, newest, true, nil // of another state directory, or of a future that was lost
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-c.done:
			stop()
		case <-ctx.Done():
		}
	}()
	evs, last, gap, err = c.events.Next(ctx, after)
	switch {
	case err != nil:
		return nil, after, false, fault.New(fault.Unavailable, "waiting for events: %w", err)
	case !gap:
		return evs, last, false, nil
	}
	return c.pastEvents(ctx, after, last)
}

// pastEvents reads events from the journal.
func (c *Control) pastEvents(ctx context.Context, after, newest uint64) (evs []Event, last uint64, gap bool, err error) {
	last = after
	err = c.cfg.Store.Read(ctx, after, func(r store.Record) error {
		ev, err := eventOf(&r, nil, func(id job.ID) (string, string) { return c.nameOf(ctx, id) })
		if err != nil {
			return err
		}
		evs, last = append(evs, ev), r.Seq
		if len(evs) == eventsAtOnce {
			return errEnough
		}
		return nil
	})
	switch {
	case err == nil || errors.Is(err, errEnough):
		return evs, last, false, nil
	case fault.KindOf(err) == fault.NotFound:
		return nil, newest, true, nil
	}
	return nil, after, false, err
}

var errEnough = errors.New("enough was read")

// LastEvent is the number of the newest event: taken before Scan, Events after it
// has every change that Scan may not have seen.
func (c *Control) LastEvent() uint64 { return c.events.Last() }

// nameOf says how a job is shown and whose it is.
func (c *Control) nameOf(ctx context.Context, id job.ID) (name, user string) {
	c.state.RLock()
	e := c.state.jobs[id]
	if e != nil {
		name, user = e.Name(), e.shared.spec.Owner.User
	}
	c.state.RUnlock()
	if e != nil {
		return name, user
	}
	row, err := c.cfg.Store.Job(ctx, uint64(id))
	if err != nil {
		return id.String(), "" // purged
	}
	j := job.Job{ID: id}
	if row.Array != 0 {
		j.Array = &job.ArrayTask{Job: job.ID(row.Array), Index: uint32(row.Task)}
	}
	return j.Name(), row.User
}

// eventOfRecord makes the event of a record that was just applied.
func (s *state) eventOfRecord(r *store.Record, staged any) (Event, error) {
	return eventOf(r, staged, func(id job.ID) (name, user string) {
		if e := s.jobs[id]; e != nil {
			return e.Name(), e.shared.spec.Owner.User
		}
		return id.String(), ""
	})
}

// eventOf makes the event of a record: the same one whether it was applied just now
// or is read out of the journal later.
func eventOf(r *store.Record, staged any, who func(job.ID) (name, user string)) (Event, error) {
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
	kindSubmitted: submittedEvent,
	kindHeld: payloadEvent(func(ev *Event, v *held) {
		ev.Kind, ev.State, ev.Attempt = EventAllocated, job.Running.String(), v.Allocation.Attempt
		if isDelegated(v.Allocation.Claims) {
			ev.State, ev.Message = job.Pending.String(), "handed over to pool "+v.Allocation.Pool
			return
		}
		for i, c := range v.Allocation.Claims {
			if i == 0 || c.Node != v.Allocation.Claims[i-1].Node {
				ev.Nodes = append(ev.Nodes, c.Node)
			}
		}
	}),
	kindStarted: payloadEvent(func(ev *Event, v *started) {
		ev.Kind, ev.State, ev.Attempt, ev.Nodes = EventStarted, job.Running.String(), v.Ref.Attempt, v.Nodes
	}),
	kindEnded: payloadEvent(func(ev *Event, v *ended) {
		ev.Kind, ev.State, ev.Attempt, ev.Message = EventEnded, v.State.String(), v.Ref.Attempt, v.Report.Message
		if v.State == job.Pending {
			ev.Kind = EventRequeued
		}
		ev.Exit = &v.Report.Exit
	}),
	kindUncertain: payloadEvent(func(ev *Event, v *uncertain) {
		ev.Kind, ev.State, ev.Attempt, ev.Message = EventUncertain, job.Running.String(), v.Ref.Attempt, v.Message
		if !v.Uncertain {
			ev.Kind = EventCertain
		}
	}),
	kindCancel: payloadEvent(func(ev *Event, v *cancel) {
		ev.Kind, ev.Message = EventCancelled, v.Message
		ev.setState(v.State, v.By)
	}),
	kindHold: payloadEvent(func(ev *Event, v *hold) {
		ev.Kind = EventReleased
		if v.Held {
			ev.Kind = EventHeld
		}
		ev.setState(v.State, v.By)
	}),
	kindRequeue: payloadEvent(func(ev *Event, v *requeue) {
		ev.Kind = EventRequeued
		ev.setState(v.State, v.By)
	}),
	kindPreempted: payloadEvent(func(ev *Event, v *preempted) {
		ev.Kind, ev.Message = EventPreempted, v.preemptMessage()
		ev.setState(v.State, "")
	}),
	kindAdded: payloadEvent(func(ev *Event, v *added) {
		ev.Kind, ev.Attempt, ev.Nodes = EventGrown, v.Allocation.Attempt, nodesOf(v.Allocation.Claims)
		ev.setState(v.State, "")
	}),
	kindJoined: payloadEvent(func(ev *Event, v *joined) {
		ev.Kind, ev.Attempt = EventJoined, v.Ref.Attempt
		ev.setState(v.State, "")
	}),
	kindAsked: payloadEvent(func(ev *Event, v *askedBack) {
		ev.Kind, ev.Attempt, ev.Message = EventAsked, v.Ref.Attempt, v.askedBackMessage()
		ev.setState(v.State, "")
	}),
	kindDropped: payloadEvent(func(ev *Event, v *dropped) {
		ev.Kind, ev.Attempt, ev.Message = EventShrunk, v.Ref.Attempt, v.Message
		ev.setState(v.State, "")
	}),
	kindSaved: payloadEvent(func(ev *Event, v *saved) {
		ev.Kind = EventSaved
		ev.setState(v.State, "")
	}),
	kindExpired: payloadEvent(func(ev *Event, v *expired) {
		ev.Kind, ev.State = EventDeadline, v.State.String()
		ev.setState(v.After, "")
	}),
	kindSuspend: payloadEvent(func(ev *Event, v *suspend) {
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
	kindUpdate: payloadEvent(func(ev *Event, v *update) {
		ev.Kind = EventUpdated
		for i, f := range v.Fields {
			if i > 0 {
				ev.Message += ", "
			}
			ev.Message += f
		}
		ev.setState(v.State, "")
	}),
	kindTop: payloadEvent(func(ev *Event, v *queueMoved) {
		ev.Kind = EventMoved
		ev.setState(v.State, "")
	}),
	kindNodes: payloadEvent(func(ev *Event, v *nodesSet) {
		ev.Kind, ev.Nodes, ev.Message = EventUndrained, v.Nodes, v.Reason
		if v.Drain {
			ev.Kind = EventDrained
		}
	}),
	kindUsage:    payloadEvent(func(ev *Event, _ *usage) { ev.Kind = EventUsage }),
	kindLearned:  payloadEvent(func(ev *Event, _ *share.Memory) { ev.Kind = EventLearned }),
	kindToken:    payloadEvent(func(ev *Event, v *Token) { ev.Kind, ev.User, ev.Message = EventToken, v.Name, v.ID }),
	kindRevoked:  payloadEvent(func(ev *Event, v *revoked) { ev.Kind, ev.Message = EventRevoked, v.ID }),
	kindPool:     payloadEvent(func(ev *Event, v *PoolSpec) { ev.Kind, ev.Message = EventPool, v.Name+", engine "+v.Engine }),
	kindPoolGone: payloadEvent(func(ev *Event, v *poolGone) { ev.Kind, ev.Message = EventPoolGone, v.Name }),
	kindPolicy: payloadEvent(func(ev *Event, v *Policy) {
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
	if a, ok := staged.(*acceptedSubmission); ok {
		ev.setSubmitted(a.first, a.shared.spec.Owner.User, a.ownDelta.Array)
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

// Next waits for changes of jobs after a number, those that are not journaled among
// them, and returns the changed jobs as they are now, with the number to go on from.
// gap says that more changed than is remembered: read the whole state anew. Numbers
// begin anew with each control plane.
func (c *Control) Next(ctx context.Context, after uint64) (views []View, last uint64, gap bool, err error) {
	ids, last, gap, err := c.changes.Next(ctx, after)
	if err != nil || gap {
		return nil, last, gap, err
	}
	c.state.RLock()
	defer c.state.RUnlock()
	for _, id := range uniqueIDs(ids) {
		if e := c.state.jobs[id]; e != nil {
			v := viewOf(e)
			views = append(views, *c.withPriority(&v))
		}
	}
	return views, last, false, nil
}
