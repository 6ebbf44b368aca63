package controller

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/service/schedule/decide"
)

// Config are the parts of a controller.
type Config struct {
	Plane Plane
	Now   func() time.Time // nil: time.Now
	Log   *slog.Logger     // nil: none
}

// Controller submits the runs of schedules. Its methods are safe for concurrent use and answer while Run
// runs.
type Controller struct {
	cfg      Config
	started  time.Time
	requests chan func(context.Context)
	ended    chan struct{} // closed when Run has returned

	schedules map[string]*managed // by full name; of the goroutine of Run

	mu      sync.Mutex
	touched map[string]bool // names of controllers
	wake    chan struct{}   // holds one at most
}

// managed is a schedule with what only the memory of this process knows.
type managed struct {
	name    string // "team/nightly"
	doc     *schedule.Document
	version uint64 // of the document as it was written
	refused map[job.Part]*refusal
	trouble string    // why nothing is decided, for people
	due     time.Time // decide again then
	dirty   bool
	rounds  int // decisions in a row that changed the document
}

// refusal is a submission that was refused.
type refusal struct {
	decide.Refusal
	count int // in a row
}

// New makes a controller. Run has to run for its methods to answer.
func New(cfg Config) *Controller {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Controller{
		cfg: cfg, started: cfg.Now(), requests: make(chan func(context.Context)), ended: make(chan struct{}),
		schedules: map[string]*managed{}, touched: map[string]bool{}, wake: make(chan struct{}, 1),
	}
}

// readAgain is how long Run waits before it reads the documents again that it could not read.
const readAgain = time.Second

// Run submits runs until ctx ends. Their jobs go on without it.
func (c *Controller) Run(ctx context.Context) {
	defer close(c.ended)
	var followers sync.WaitGroup
	defer followers.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for {
		err := c.readDocuments(ctx)
		if err == nil {
			break
		}
		c.cfg.Log.Warn("the documents of schedules cannot be read; trying again", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(readAgain):
		}
	}
	followers.Go(func() { c.followJobs(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-c.requests:
			f(ctx)
		case <-c.wake:
		case <-timer.C:
		}
		c.decideAll(ctx)
		timer.Reset(c.nextPause())
	}
}

// readDocuments takes up the schedules that the control plane keeps.
func (c *Controller) readDocuments(ctx context.Context) error {
	stored, err := c.cfg.Plane.Documents(ctx)
	if err != nil {
		return err
	}
	for _, s := range stored {
		name := strings.TrimPrefix(s.Name, schedule.ControllerKind+"/")
		var d schedule.Document
		if err := json.Unmarshal(s.Document, &d); err != nil || d.Revision == 0 {
			c.cfg.Log.Error("the document of a schedule cannot be read; it has no runs", "schedule", name, "error", err)
			continue
		}
		m := newManaged(name, &d)
		m.version = s.Version
		c.schedules[name] = m
	}
	return nil
}

func newManaged(name string, d *schedule.Document) *managed {
	return &managed{name: name, doc: d, refused: map[job.Part]*refusal{}, dirty: true}
}

// followJobs has schedules decided upon whose jobs change, until ctx ends.
func (c *Controller) followJobs(ctx context.Context) {
	after := uint64(0)
	for ctx.Err() == nil {
		names, last, gap, err := c.cfg.Plane.Next(ctx, after)
		if err != nil {
			return // the control plane ends
		}
		if after = last; gap {
			names = append(names, all)
		}
		if len(names) > 0 {
			c.touchSchedules(names)
		}
	}
}

// all stands for every schedule in touchSchedules.
const all = "*"

func (c *Controller) touchSchedules(names []string) {
	c.mu.Lock()
	for _, n := range names {
		c.touched[n] = true
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// decideAll decides upon the schedules that something happened to, and those whose time has come.
func (c *Controller) decideAll(ctx context.Context) {
	c.mu.Lock()
	touched := c.touched
	c.touched = map[string]bool{}
	c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.schedules)) {
		m := c.schedules[name]
		if m.dirty || !m.due.After(c.cfg.Now()) || touched[controllerName(name)] || touched[all] {
			c.decideSchedule(ctx, m)
		}
	}
}

// longestPause bounds the time between two looks at the clock: somebody may set it.
const longestPause = 10 * time.Second

// nextPause is how long nothing has to be decided.
func (c *Controller) nextPause() time.Duration {
	next := longestPause
	for _, m := range c.schedules {
		if m.dirty {
			return 0
		}
		next = min(next, m.due.Sub(c.cfg.Now()))
	}
	return max(next, 10*time.Millisecond)
}

// askRun has the goroutine of Run answer a request.
func (c *Controller) askRun(ctx context.Context, f func(context.Context) error) error {
	done := make(chan error, 1)
	select {
	case c.requests <- func(run context.Context) { done <- f(run) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return fault.New(fault.Unavailable, "the server ends")
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func controllerName(name string) string { return schedule.ControllerName(name) }

func unknownSchedule(name string) error {
	return fault.New(fault.NotFound, "there is no schedule %s", name).Advise("cox schedule list shows the schedules that you may see")
}

// Submitted is what a submission did.
type Submitted struct {
	Revision uint32
	Created  bool
	Changed  bool
}

// Submit makes a schedule, or gives the one of that name a new specification. It is durable when it
// returns. The specification is admitted by the caller and never written to again. allowed says whether
// the schedule of an owner may be changed; nil: it may.
func (c *Controller) Submit(ctx context.Context, by job.Actor, spec schedule.Spec, allowed func(job.Owner) error) (did Submitted, err error) {
	err = c.askRun(ctx, func(ctx context.Context) error {
		name := schedule.FullName(spec.Account, spec.Name)
		m := c.schedules[name]
		fresh := m == nil
		if fresh {
			m = newManaged(name, nil)
		} else if allowed != nil {
			if err := allowed(m.doc.Spec.Owner); err != nil {
				return err
			}
		}
		d, err := decide.Submit(m.doc, &spec, by.Name, c.cfg.Now())
		switch {
		case err != nil:
			return err
		case d == nil:
			did = Submitted{Revision: m.doc.Revision}
			return nil
		}
		if err := c.writeDocument(ctx, m, by, d); err != nil {
			return err
		}
		did = Submitted{Revision: d.Revision, Created: fresh, Changed: true}
		c.schedules[name], m.dirty = m, true
		return nil
	})
	return did, err
}

// changeDocument applies a request of a person to the document of a schedule; nil: it stays as it is.
func (c *Controller) changeDocument(ctx context.Context, by job.Actor, name string, f func(*managed) (*schedule.Document, error)) error {
	return c.askRun(ctx, func(ctx context.Context) error {
		m := c.schedules[name]
		if m == nil {
			return unknownSchedule(name)
		}
		d, err := f(m)
		if err != nil || d == nil {
			return err
		}
		m.dirty = true
		return c.writeDocument(ctx, m, by, d)
	})
}

// Suspend stops the runs by the clock. Runs that were begun go on.
func (c *Controller) Suspend(ctx context.Context, by job.Actor, name string) error {
	return c.changeDocument(ctx, by, name, func(m *managed) (*schedule.Document, error) {
		return decide.Suspend(m.doc, by.Name, c.cfg.Now()), nil
	})
}

// Resume begins with runs by the clock again.
func (c *Controller) Resume(ctx context.Context, by job.Actor, name string) error {
	return c.changeDocument(ctx, by, name, func(m *managed) (*schedule.Document, error) { return decide.Resume(m.doc, c.cfg.Now()), nil })
}

// RunNow begins with a run by hand, and returns it when it was submitted. A refusal of its job is the
// error, and the run then counts as refused.
func (c *Controller) RunNow(ctx context.Context, by job.Actor, name string) (out schedule.Run, err error) {
	err = c.askRun(ctx, func(ctx context.Context) error {
		m := c.schedules[name]
		if m == nil {
			return unknownSchedule(name)
		}
		d, run, err := decide.RunNow(m.doc, c.inMemory(m), name, by.Name, c.cfg.Now())
		if err != nil {
			return err
		}
		if err := c.writeDocument(ctx, m, by, d); err != nil {
			return err
		}
		c.decideUntilRest(ctx, m)
		out = *run
		for _, r := range m.doc.Runs {
			if r.Try == run.Try {
				out = r
			}
		}
		return nil
	})
	return out, err
}

// decideUntilRest decides until nothing follows at once.
func (c *Controller) decideUntilRest(ctx context.Context, m *managed) {
	for m.dirty = true; m.dirty; {
		c.decideSchedule(ctx, m)
	}
}

// Stop removes a schedule: there are no more runs. With cancel the runs that have not ended are
// cancelled, else they go on.
func (c *Controller) Stop(ctx context.Context, by job.Actor, name string, cancel bool) (alive []job.ID, err error) {
	err = c.askRun(ctx, func(ctx context.Context) error {
		m := c.schedules[name]
		if m == nil {
			return unknownSchedule(name)
		}
		for _, j := range c.inMemory(m) {
			if !j.State.Final() {
				alive = append(alive, j.ID)
			}
		}
		if cancel && len(alive) > 0 {
			errs, err := c.cfg.Plane.Change(ctx, by, alive, control.Cancel{Grace: -1, Message: "schedule " + name + ": stopped"})
			for _, e := range append(errs, err) {
				if e != nil && fault.KindOf(e) != fault.NotFound && fault.KindOf(e) != fault.Conflict { // it has ended meanwhile
					return e
				}
			}
		}
		if err := c.cfg.Plane.RemoveDocument(ctx, by, controllerName(name)); err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
		delete(c.schedules, name)
		c.cfg.Log.Info("schedule stopped", "schedule", name, "by", by.Name)
		return nil
	})
	return alive, err
}

// writeDocument makes a document durable and takes it over.
func (c *Controller) writeDocument(ctx context.Context, m *managed, by job.Actor, d *schedule.Document) error {
	payload, err := json.Marshal(d)
	if err != nil {
		return err
	}
	err = c.cfg.Plane.SetDocument(ctx, by, state.Controller{Name: controllerName(m.name), Owner: d.Spec.Owner, Version: m.version + 1, Document: payload})
	if err != nil {
		return err
	}
	m.doc, m.version = d, m.version+1
	return nil
}
