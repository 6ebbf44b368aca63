package control

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/store"
)

// Op is a change that somebody asks for, of any number of jobs.
type Op interface{ isOp() }

// The changes.
type (
	// Cancel ends jobs: pending ones at once, running ones by Signal (0: SIGTERM)
	// and, after Grace, SIGKILL. Grace 0 kills at once; negative: the control
	// plane's own. Cancelling an ended job is no error.
	Cancel struct {
		Grace   time.Duration
		Signal  int
		Message string
	}
	// Hold keeps pending jobs from starting, or lets them go again. What an
	// administrator holds (Admin) only an administrator releases (Admin).
	Hold struct {
		On    bool
		Admin bool
	}
	// Requeue ends running jobs and lets them wait for a new attempt, or lets ended
	// ones wait again; with Hold they wait until they are released.
	Requeue struct {
		Hold    bool
		Special bool // with Hold: in Slurm's state SPECIAL_EXIT
	}
	// Signal sends a signal to running jobs and nothing more. It is not journaled.
	Signal struct {
		Signal int
		To     engine.Scope
	}
	// Suspend stops the processes of running jobs, or continues them.
	Suspend struct{ On bool }
	// Saved says that running jobs have saved what they did until now: it is not lost
	// if they are ended, and they go on from there. As is engine.Saved's.
	Saved struct{ As string }
	// Top puts pending jobs before all others of their owner.
	Top struct{}
	// Update changes what was asked for; nil leaves a field. Most fields change only
	// while a job waits. Who may raise a limit or a priority is decided by the caller.
	Update struct {
		Name       *string
		Comment    *string
		Account    *string
		Partitions *[]string
		QOS        *string
		TimeLimit  *time.Duration // 0: none
		TimeMin    *time.Duration
		Begin      *time.Time // zero: at once
		Deadline   *time.Time // zero: none
		Depends    *job.Dependency
		Priority   *int64
		Nice       *int64
		Requeue    *bool
		MaxRunning *uint32 // of the whole array; 0: no limit
		Nodes      *job.Range
		NodeList   *[]string
		Exclude    *[]string
		Constraint *job.Constraint
	}
)

func (Cancel) isOp()  {}
func (Hold) isOp()    {}
func (Requeue) isOp() {}
func (Signal) isOp()  {}
func (Suspend) isOp() {}
func (Top) isOp()     {}
func (Saved) isOp()   {}
func (Update) isOp()  {}

// Change asks for one change of many jobs, in one durable batch: it is durable for
// all of them when Change returns, or for none if it returns an error. The list has
// an error, or nil, for each job.
func (c *Control) Change(ctx context.Context, by job.Actor, ids []job.ID, op Op) ([]error, error) {
	if err := c.checkOp(op); err != nil {
		return nil, err
	}
	for range 10 {
		w := &changeRequest{by: by, op: op, ids: ids, errs: make([]error, len(ids))}
		if err := c.prepareChange(ctx, w); err != nil {
			return nil, err
		}
		m := message{bulk: len(ids) > 1}
		if len(ids) == 1 {
			m.job = ids[0]
		}
		err := c.askLoop(ctx, m, func(l *loop, answer func(error)) { l.stageChanges(w, answer) })
		switch {
		case err == nil:
			return w.errs, nil
		case !errors.Is(err, errMoved):
			return nil, err
		}
	}
	return nil, fault.New(fault.Unavailable, "the jobs of the request could not be looked up")
}

// changeRequest is a change on its way to the loop.
type changeRequest struct {
	by   job.Actor
	op   Op
	ids  []job.ID
	errs []error
	past map[job.ID]*state.PastFates // of what an update's dependency names
	old  map[job.ID]*state.JobRecord // of jobs that left memory
	gone map[job.ID]error            // what to say of jobs that are not in memory
	bars map[job.ID]error            // with what the engine refuses an update
	// altered are the attempts that another scheduler has changed as an update says.
	altered map[job.ID]engine.Ref
}

// checkOp refuses a change that this control plane can make to no job.
func (c *Control) checkOp(op Op) error {
	switch op := op.(type) {
	case Suspend:
		if len(c.pools.WithoutSuspend()) == len(c.pools.AllPools()) {
			return pools.CannotSuspendError(c.pools.AllPools()[0].Name)
		}
	case Update:
		return op.checkFields()
	case nil:
		return fault.New(fault.Invalid, "no change is asked for")
	}
	return nil
}

// prepareChange looks up in the store what the loop must not wait for.
func (c *Control) prepareChange(ctx context.Context, w *changeRequest) (err error) {
	if u, ok := w.op.(Update); ok {
		if w.past, err = c.lookUp(ctx, u.Depends); err != nil {
			return err
		}
	}
	if u, ok := w.op.(Update); ok {
		if w.bars, err = c.validateUpdate(ctx, &u, w.ids); err != nil {
			return err
		}
		c.alterHandedOver(ctx, w, &u)
	}
	c.state.RLock()
	var missing []job.ID
	for _, id := range w.ids {
		if c.state.Jobs[id] == nil {
			missing = append(missing, id)
		}
	}
	c.state.RUnlock()
	w.gone, w.old = map[job.ID]error{}, map[job.ID]*state.JobRecord{}
	for _, id := range missing {
		row, err := c.cfg.Store.Job(ctx, uint64(id))
		switch {
		case fault.KindOf(err) == fault.NotFound:
			w.gone[id] = state.NoSuchJob(id)
		case err != nil:
			return err
		default:
			if w.gone[id], err = c.prepareEnded(ctx, w, &row); err != nil {
				return err
			}
		}
	}
	return nil
}

// stageChanges stages a change of each job, and answers once all records are durable.
func (l *loop) stageChanges(w *changeRequest, answer func(error)) {
	for _, id := range w.ids {
		_, known := w.gone[id]
		if l.state.Jobs[id] == nil && !known && w.old[id] == nil || w.old[id] != nil && l.state.RanSince(w.old[id]) {
			answer(errMoved)
			return
		}
	}
	if u, ok := w.op.(Update); ok && !l.state.KnowsAll(u.Depends, w.past) {
		answer(errMoved)
		return
	}
	req := &request{answer: answer}
	order := make([]int, len(w.ids))
	for i := range order {
		order[i] = i
	}
	// Later jobs first: nothing that comes after a cancelled job is looked at then.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(w.ids[b], w.ids[a]) })
	for n, i := range order {
		id := w.ids[i]
		if n > 0 && w.ids[order[n-1]] == id {
			w.errs[i] = w.errs[order[n-1]] // named twice
			continue
		}
		e := l.state.Jobs[id]
		if e == nil {
			if e = w.old[id]; e == nil || w.gone[id] != nil {
				w.errs[i] = w.gone[id]
				continue
			}
			l.state.ReviveJob(e)
		}
		w.errs[i] = l.stageChange(w, e, req)
	}
	if req.records == 0 {
		l.answerWhenLeading(answer)
	}
}

// stageChange stages the change of one job, or says why it cannot be made.
func (l *loop) stageChange(w *changeRequest, e *state.JobRecord, req *request) error {
	switch op := w.op.(type) {
	case Cancel:
		return l.askCancel(w, e, req, op)
	case Hold:
		return l.askHold(w, e, req, op)
	case Requeue:
		return l.askRequeue(w, e, req, op)
	case Signal:
		a, ok := l.state.Ledger.Of(e.ID)
		if !ok {
			return fault.New(fault.Conflict, "job %s does not run", e.Name())
		}
		l.answerWhenLeading(func(err error) {
			if err != nil {
				return // so it is refused
			}
			l.callsOf(a).Signal(reconcile.Ref(a), op.Signal, op.To)
			for _, ref := range l.state.RunningRefs(e)[1:] {
				l.callsOf(a).Signal(ref, op.Signal, op.To)
			}
		})
		return nil
	case Suspend:
		return l.askSuspend(w, e, req, op)
	case Top:
		return l.askTop(w, e, req)
	case Saved:
		return l.askSaved(w, e, req, op)
	case Update:
		return l.askUpdate(w, e, req, op)
	case PoolMove:
		return l.askPoolMove(w, e, req, op)
	}
	return fault.New(fault.Unsupported, "%T is not built yet", w.op)
}

func (l *loop) askCancel(w *changeRequest, e *state.JobRecord, req *request, op Cancel) error {
	if e.State.Final() && !planted.CancelEnded {
		return nil
	}
	grace := op.Grace
	if grace < 0 {
		grace = l.cfg.Grace
	}
	jobState := e.State
	if jobState == job.Pending {
		jobState = job.Cancelled
	}
	v := state.Cancel{Signal: op.Signal, Grace: grace, Message: op.Message, State: &jobState}
	if e.State == job.Pending && v.Message == "" && e.Report() != state.NoReport {
		v.Message = "cancelled by " + w.by.Name // else what its last attempt failed by would seem to be why
	}
	l.stageFor(req, state.KindCancel, e.ID, w.by, v, func() {
		l.stopAttempt(e, engine.Stop{Grace: grace, Signal: op.Signal, Reason: "cancelled by " + w.by.Name})
	})
	return nil
}

func (l *loop) askHold(w *changeRequest, e *state.JobRecord, req *request, op Hold) error {
	switch {
	case e.State.Final():
		return fault.New(fault.Conflict, "job %s has ended (%s)", e.Name(), e.State)
	case !op.On && e.Flags&job.HeldAdmin != 0 && !op.Admin:
		return fault.New(fault.Permission, "job %s is held by an administrator", e.Name()).
			Advise("ask an administrator to release it")
	}
	if op.On && e.WaitsInPool() && e.Last.Requeue == nil && e.Last.Cancel == nil { // it is taken back
		l.stageFor(req, state.KindRequeue, e.ID, w.by, state.Requeue{State: state.StatePointer(e.State)}, func() {
			l.stopAttempt(e, engine.Stop{Grace: l.cfg.Grace, Reason: "held by " + w.by.Name, Why: engine.ForRequeue})
		})
	}
	l.stageFor(req, state.KindHold, e.ID, w.by, state.Hold{Held: op.On, Admin: op.On && op.Admin, State: state.StatePointer(e.State)}, nil)
	return nil
}

func (l *loop) askRequeue(w *changeRequest, e *state.JobRecord, req *request, op Requeue) error {
	switch {
	case e.State == job.Pending && op.Special:
		return fault.New(fault.Conflict, "job %s waits: only a job that has begun can be requeued to SPECIAL_EXIT", e.Name()).Advise("hold it")
	case e.State == job.Pending && op.Hold:
		return l.askHold(w, e, req, Hold{On: true})
	case e.State == job.Pending:
		return nil
	case e.State.Final() && job.Check(e.State, job.Pending, job.ByUser) != nil:
		return fault.New(fault.Conflict, "job %s is %s and cannot run again", e.Name(), e.State)
	case e.State.Final() && e.ExtraOrZero().Part != nil:
		return partEndedError(e)
	case e.State.Final() && l.pools.IsGone(e.Shared.Spec.Pool):
		return fault.New(fault.Conflict, "job %s cannot run again: there is no pool %s any more", e.Name(), e.Shared.Spec.Pool).
			Advise("add the pool again, or submit the job anew for one of %s", strings.Join(l.pools.ConfiguredNames(), ", "))
	}
	jobState := e.State
	if jobState.Final() {
		jobState = job.Pending
	}
	l.stageFor(req, state.KindRequeue, e.ID, w.by, state.Requeue{Hold: op.Hold, Special: op.Special, State: &jobState}, func() {
		l.stopAttempt(e, engine.Stop{Grace: l.cfg.Grace, Reason: "requeued by " + w.by.Name, Why: engine.ForRequeue})
	})
	return nil
}

func (l *loop) askSuspend(w *changeRequest, e *state.JobRecord, req *request, op Suspend) error {
	from, to := job.Running, job.Suspended
	if !op.On {
		from, to = to, from
	}
	aside := e.State.Holds() && e.Last != nil && e.Last.PreemptSuspended
	switch {
	case aside && op.On != e.Last.UserSuspended && e.Flags&job.Stopping == 0:
		to = job.Suspended // when it has its place again, too, or until then
	case e.State == to:
		return nil
	case aside && !op.On:
		return fault.New(fault.Conflict, "job %s is suspended to make room, and goes on when what it holds is free again", e.Name()).
			Advise("cancel or hold the jobs that have its place; cox requeue %s ends it and lets it wait", e.Name())
	case e.State != from && !op.On:
		return fault.New(fault.Conflict, "job %s is not suspended: it is %s", e.Name(), e.StatusText())
	case e.State != from || e.Flags&(job.Configuring|job.Stopping) != 0:
		return fault.New(fault.Conflict, "job %s does not run: it is %s", e.Name(), e.StatusText())
	case slices.Contains(l.pools.WithoutSuspend(), e.Last.Pool):
		return pools.CannotSuspendError(e.Last.Pool)
	}
	l.stageFor(req, state.KindSuspend, e.ID, w.by, state.Suspend{On: op.On, State: &to}, func() {
		if e.Last.PreemptSuspended || e.Last.SuspendRequested() && !op.On {
			return // to make room it is suspended all the same
		}
		for _, ref := range l.state.RunningRefs(e) {
			l.callsFor(e).Suspend(ref, op.On)
		}
	})
	return nil
}

// askTop gives a pending job the place of its owner's first job in the queue. The owner's jobs
// in between move back by one place, so nobody else's job is passed.
func (l *loop) askTop(w *changeRequest, e *state.JobRecord, req *request) error {
	if e.State != job.Pending {
		return fault.New(fault.Conflict, "job %s is %s", e.Name(), e.StatusText())
	}
	owner := e.Shared.Spec.Owner
	var ahead []*state.JobRecord
	for _, o := range l.state.Live {
		if o.State == job.Pending && o.Shared.Spec.Owner == owner && (o == e || o.IsBefore(e)) {
			ahead = append(ahead, o)
		}
	}
	slices.SortFunc(ahead, func(a, b *state.JobRecord) int {
		if a.IsBefore(b) {
			return -1
		}
		return 1
	})
	if len(ahead) == 1 {
		return nil
	}
	v := state.QueueMoved{State: state.StatePointer(job.Pending)}
	v.Moves = append(v.Moves, state.QueuePlace{Job: e.ID, Priority: ahead[0].Priority, At: ahead[0].QueuedAt - 1})
	for i, o := range ahead[:len(ahead)-1] {
		next := ahead[i+1]
		v.Moves = append(v.Moves, state.QueuePlace{Job: o.ID, Priority: next.Priority, At: next.QueuedAt})
	}
	l.stageFor(req, state.KindTop, e.ID, w.by, v, nil)
	return nil
}

// prepareEnded returns the answer for a job that is not in memory, or brings the job into the
// request if it is to run again.
func (c *Control) prepareEnded(ctx context.Context, w *changeRequest, row *store.JobRow) (error, error) {
	id := job.ID(row.ID)
	if !row.Final {
		return errMoved, nil // it came back meanwhile
	}
	switch w.op.(type) {
	case Cancel:
		return nil, nil
	case Requeue:
		e, err := c.state.ReadRow(row)
		if err != nil {
			return nil, err
		}
		if e.ExtraOrZero().Part != nil {
			return partEndedError(e), nil
		}
		w.old[id] = e
		return c.renewBlobs(ctx, e)
	}
	return fault.New(fault.Conflict, "job %d has ended (%s)", id, row.State), nil
}

// partEndedError refuses to run a job again of whose work a controller has begun the next try.
func partEndedError(e *state.JobRecord) error {
	if name, ok := strings.CutPrefix(e.ExtraOrZero().Part.Controller, schedule.ControllerKind+"/"); ok {
		return fault.New(fault.Conflict, "job %s has ended, and cannot run again: it was a run of schedule %s", e.Name(), name).
			Advise("cox schedule run %s begins another run", name)
	}
	return fault.New(fault.Conflict, "job %s has ended, and cannot run again: it was a replica of %s, which begins its replicas anew itself", e.Name(), e.ExtraOrZero().Part.Controller).
		Advise("cox service show says what runs of it")
}

// renewBlobs stores script and environment of a job that will run again anew, so that no purge
// removes them: a purge keeps only those of jobs in memory. The first error says that they are
// gone.
func (c *Control) renewBlobs(ctx context.Context, e *state.JobRecord) (error, error) {
	spec := state.ViewOf(e).Job.Spec
	for _, hash := range []string{spec.Program.ScriptHash, spec.Env.Hash} {
		if hash == "" {
			continue
		}
		b, err := c.cfg.Store.Blob(ctx, hash)
		if err == nil {
			_, err = c.cfg.Store.PutBlob(ctx, b)
		}
		switch {
		case err != nil && fault.KindOf(err) == fault.NotFound:
			return fault.New(fault.Conflict, "job %s cannot run again: its script or its environment is no longer kept", e.Name()).
				Advise("submit it anew; the server's file says how long history is kept"), nil
		case err != nil:
			return nil, err
		}
	}
	return nil, nil
}
