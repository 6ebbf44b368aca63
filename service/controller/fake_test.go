package controller_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/controller"
	"github.com/coxswain-sched/coxswain/service/endpoints"
)

// plane is a control plane with an engine, in memory: jobs run 100 ms after their submission and are
// ready after a second more. It outlives controllers.
type plane struct {
	mu      sync.Mutex
	hub     *endpoints.Hub // of the present controller
	docs    map[string]controller.Stored
	parts   []*controller.Part // by job
	changes []job.ID
	changed chan struct{}
	version uint64

	number    int // port that every replica serves at; 0: 20000 and its job
	submits   int
	refuse    error                    // what submissions are answered with
	failDocs  error                    // what writes of documents are answered with
	bad       map[string]bool          // images of which the program ends at once
	afterDocs func()                   // called after a document was written
	hang      map[string]chan struct{} // submissions of a controller do not return before it is closed
	loseDocs  int                      // how many writes more are made and answered with an error

	rules func() *account.Policy // of the site; nil: none
}

func newPlane() *plane {
	return &plane{docs: map[string]controller.Stored{}, changed: make(chan struct{}), bad: map[string]bool{}}
}

func (p *plane) Documents(context.Context) (out []controller.Stored, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.docs {
		out = append(out, d)
	}
	return out, nil
}

func (p *plane) SetDocument(_ context.Context, _ job.Actor, s controller.Stored) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failDocs != nil {
		return p.failDocs
	}
	if s.Version != p.docs[s.Controller].Version+1 {
		return fault.New(fault.Conflict, "version %d follows %d", s.Version, p.docs[s.Controller].Version)
	}
	p.docs[s.Controller] = s
	if p.afterDocs != nil {
		p.afterDocs()
	}
	if p.loseDocs > 0 {
		p.loseDocs--
		return fault.New(fault.Unavailable, "the journal does not answer")
	}
	return nil
}

func (p *plane) RemoveDocument(_ context.Context, _ job.Actor, name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.docs, name)
	return nil
}

func (p *plane) Submit(ctx context.Context, part job.Part, s control.Submission) (control.Accepted, error) {
	p.mu.Lock()
	hang := p.hang[part.Controller]
	p.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return control.Accepted{}, ctx.Err()
	}
	p.submits++
	if p.refuse != nil {
		return control.Accepted{}, p.refuse
	}
	for _, x := range p.parts {
		if x.Part == part {
			return control.Accepted{ID: x.Job.ID}, nil
		}
	}
	spec := *s.Spec
	x := &controller.Part{Part: part, View: state.View{Job: job.Job{ID: job.ID(len(p.parts) + 1), Spec: &spec, State: job.Pending, Submitted: time.Now()}}}
	p.parts = append(p.parts, x)
	p.noteChange(x)
	time.AfterFunc(100*time.Millisecond, func() { p.start(x) })
	return control.Accepted{ID: x.Job.ID}, nil
}

func (p *plane) start(x *controller.Part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.Job.State != job.Pending {
		return
	}
	x.Job.State, x.Job.Started, x.Job.Attempt = job.Running, time.Now(), x.Job.Attempt+1
	x.Ref = engine.Ref{Allocation: uint64(x.Job.ID), Attempt: x.Job.Attempt}
	p.noteChange(x)
	if p.bad[x.Job.Spec.Image] {
		time.AfterFunc(50*time.Millisecond, func() { p.end(x.Job.ID, job.Failed) })
		return
	}
	time.AfterFunc(time.Second, func() { p.serve(x, x.Ref) })
}

func (p *plane) serve(x *controller.Part, ref engine.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
	number := cmp.Or(p.number, 20000+int(x.Job.ID))
	p.hub.SetEndpoints(engine.Endpoints{
		Ref: ref, Job: x.Job.ID, Version: p.version, Ready: true,
		List: []engine.Endpoint{{Port: "http", Host: "127.0.0.1", Number: number}},
	})
}

// end ends a job.
func (p *plane) end(id job.ID, as job.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.parts[id-1]
	if x.Job.State.Final() {
		return
	}
	x.Job.State, x.Job.Ended, x.Job.Exit, x.Ref = as, time.Now(), job.ExitCode{Status: 1}, engine.Ref{}
	p.noteChange(x)
}

func (p *plane) Change(_ context.Context, _ job.Actor, ids []job.ID, op control.Op) ([]error, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		x := p.parts[id-1]
		x.Message = op.(control.Cancel).Message
		if x.Job.State == job.Pending {
			x.Job.State, x.Job.Ended = job.Cancelled, time.Now()
		} else if !x.Job.State.Final() {
			x.Ending = true
			time.AfterFunc(500*time.Millisecond, func() { p.end(id, job.Cancelled) })
		}
		p.noteChange(x)
	}
	return make([]error, len(ids)), nil
}

func (p *plane) Parts(_ context.Context, name string) (out []controller.Part, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.parts {
		if x.Part.Controller == name {
			out = append(out, *x)
		}
	}
	return out, nil
}

func (p *plane) noteChange(x *controller.Part) {
	p.changes = append(p.changes, x.Job.ID)
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *plane) Next(ctx context.Context, after uint64) (out []controller.Part, last uint64, gap bool, err error) {
	for {
		p.mu.Lock()
		wait, n := p.changed, uint64(len(p.changes))
		for _, id := range p.changes[min(after, n):] {
			out = append(out, *p.parts[id-1])
		}
		p.mu.Unlock()
		if len(out) > 0 {
			return out, n, false, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, after, false, ctx.Err()
		}
	}
}

// set changes the plane.
func (p *plane) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *plane) living() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.parts {
		if !x.Job.State.Final() {
			n++
		}
	}
	return n
}

// running is a controller that runs.
type running struct {
	*controller.Controller
	t    *testing.T
	p    *plane
	kill func() // and does not wait
	stop func()
}

// start runs a controller on a plane, as after the start of a server.
func (p *plane) startController(t *testing.T) *running { return p.startControllerOn(t, p) }

// startControllerOn runs it on a plane that is this one but for something.
func (p *plane) startControllerOn(t *testing.T, as controller.Plane) *running {
	hub := endpoints.New(endpoints.Config{})
	p.mu.Lock()
	p.hub = hub
	for _, x := range p.parts {
		if x.Job.State == job.Running && !x.Job.Started.IsZero() && time.Since(x.Job.Started) >= time.Second {
			p.version++
			go p.serve(x, x.Ref) // the engine says it all again
		}
	}
	p.mu.Unlock()
	c := controller.New(controller.Config{Plane: as, Hub: hub, PageEach: 50 * time.Millisecond, PageTimeout: time.Hour, Rules: p.rules, IsAdmin: func(o job.Owner) bool { return o.UID == 0 }})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { c.Run(ctx) })
	wg.Go(func() { hub.Run(ctx) })
	return &running{c, t, p, cancel, func() { cancel(); wg.Wait() }}
}

var anna = job.Actor{Name: "anna", UID: 2001}

const name = "team/chat"

func specOf(image string, replicas int) service.Spec {
	return service.Spec{
		Name: "chat", Account: "team", Owner: job.Owner{User: "anna", UID: 2001},
		Job: job.Spec{Image: image, Serve: &job.Serve{Ports: []job.Port{{Name: "http"}}}}, Replicas: service.Bounds{Min: replicas, Max: replicas}, Update: service.Update{Surge: 1},
	}
}

func (r *running) status() controller.Status {
	r.t.Helper()
	s, err := r.Get(r.t.Context(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// until lets time pass until something is so.
func (r *running) until(d time.Duration, f func(s controller.Status) bool) controller.Status {
	r.t.Helper()
	for range d / (100 * time.Millisecond) {
		time.Sleep(100 * time.Millisecond) // of the bubble
		synctest.Wait()
		if s := r.status(); f(s) {
			return s
		}
	}
	s := r.status()
	r.t.Fatalf("not so after %s: %d of %d ready, rollout %+v, replicas %+v, reasons %v", d, s.Ready, s.Want, s.Rollout, s.Replicas, s.Reasons)
	return s
}

func settled(s controller.Status) bool {
	return s.Ready == s.Want && len(s.Replicas) == s.Want && (s.Rollout.Phase == service.Done || s.Rollout.Phase == service.Undone)
}

func (r *running) submit(s service.Spec) {
	r.t.Helper()
	if _, err := r.Submit(r.t.Context(), anna, s, nil); err != nil {
		r.t.Fatal(err)
	}
}

func hasReason(s controller.Status, text string) bool {
	return slices.ContainsFunc(s.Reasons, func(r controller.Reason) bool { return strings.Contains(r.Text, text) })
}

var errQuota = fault.New(fault.Exhausted, "quota of team: 2 of 2 GPUs are used")

var cancelOp = control.Cancel{Grace: -1, Message: "anna asked for it"}
