package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/snapshot"
	"github.com/coxswain-sched/coxswain/store"
)

var _ Plane = (*control.Control)(nil)

// plane is a control plane that keeps jobs in a list and runs nothing. A test
// changes it through its methods.
type plane struct {
	mu   sync.RWMutex
	jobs []*state.View // ascending by number
	next job.ID
	journal
	tokens map[string]state.Token
	blobs  map[string][]byte
	nodes  []query.NodeView
	audit  []store.Record
	calls  []string        // changes that came through, for tests
	fail   error           // what Submit and Change answer instead
	scans  int             // calls of Scan
	left   map[job.ID]bool // memory: only the history has them
	leaves job.ID          // memory once Tasks has listed it
	asked  atomic.Int64    // calls of Job
	dug    atomic.Int64    // calls of History
	rules  []state.Policy

	pools    []pools.View
	findings []engine.Finding // what a look at a pool finds
	added    map[string]engine.Engine
	fits     func(*job.Spec) (bool, error) // nil: everything fits everywhere
	late     int                           // jobs that History does not have yet; as many of the oldest Scan does not
}

// journal is the plane's own numbering, with a first number that is kept.
type journal struct {
	all  []state.Event
	kept int // events that were dropped
	wake chan struct{}
}

func newPlane() *plane {
	p := &plane{
		pools: []pools.View{{Pool: fleet.Pool{Name: "local", Engine: "local"}, Default: true, Nodes: 4, Devices: 4, Info: &engine.Info{Name: "local", Version: "1", Abilities: engine.Abilities{Gang: engine.GangStrict}}}},
		next:  1, tokens: map[string]state.Token{}, blobs: map[string][]byte{}, journal: journal{wake: make(chan struct{})},
	}
	for i := range 4 {
		p.nodes = append(p.nodes, query.NodeView{Node: fleet.Node{
			Name: fmt.Sprintf("v%d", i+1), Pool: "local", State: fleet.Up, Parts: []string{"main"},
			Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 32 * resource.GiB},
			Devices:  []fleet.Device{{Index: 0, Kind: "gpu", Type: "h100"}},
		}})
	}
	return p
}

func (p *plane) emit(e state.Event) {
	e.Seq, e.At = uint64(p.kept+len(p.all)+1), time.Now()
	p.all = append(p.all, e)
	close(p.wake)
	p.wake = make(chan struct{})
}

func (p *plane) Submit(_ context.Context, s control.Submission) (control.Accepted, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		return control.Accepted{}, p.fail
	}
	first, n := p.next, 1
	hash := store.Hash(s.Script)
	p.blobs[hash] = s.Script
	spec := *s.Spec
	spec.Program.ScriptHash = hash
	var env []byte
	for _, kv := range s.Env {
		env = append(append(env, kv...), 0)
	}
	spec.Env.Hash = store.Hash(env)
	p.blobs[spec.Env.Hash] = env
	add := func(a *job.ArrayTask) {
		v := &state.View{Job: job.Job{ID: p.next, Array: a, Spec: &spec, Submitted: time.Now()}, Why: reason.Reason{Code: reason.Priority, Ahead: 1}}
		p.next++
		p.jobs = append(p.jobs, v)
	}
	if a := spec.Array; a != nil {
		n = len(a.Indices)
		for _, i := range a.Indices {
			add(&job.ArrayTask{Job: first, Index: i, Count: uint32(n), MaxRunning: a.MaxRunning})
		}
	} else {
		add(nil)
	}
	out := control.Accepted{ID: first}
	if spec.Array != nil {
		out.Tasks = n
	}
	p.emit(state.Event{Kind: state.EventSubmitted, Job: first, Name: first.String(), Count: out.Tasks, User: spec.Owner.User, By: s.By.Name})
	p.audit = append(p.audit, store.Record{Seq: uint64(len(p.audit) + 1), At: time.Now(), Kind: "submitted", Job: uint64(first), By: store.Actor(s.By), Data: []byte(`{"spec":{"env":{"hash":"x"}},"hash":"secret"}`)})
	return out, nil
}

func (p *plane) Estimate(context.Context, control.Submission) (control.Estimate, error) {
	return control.Estimate{Start: time.Unix(1e9, 0), Nodes: []string{"v1"}}, nil
}

func (p *plane) Fits(_ context.Context, s control.Submission) (bool, error) {
	if p.fits == nil {
		return true, nil
	}
	return p.fits(s.Spec)
}

func (p *plane) Change(_ context.Context, by job.Actor, ids []job.ID, op control.Op) ([]error, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		return nil, p.fail
	}
	errs := make([]error, len(ids))
	p.calls = append(p.calls, fmt.Sprintf("%s %T%+v %v", by.Name, op, op, ids))
	for i, id := range ids {
		v := p.get(id)
		if v == nil {
			errs[i] = fault.New(fault.NotFound, "there is no job %d", id)
			continue
		}
		switch op := op.(type) {
		case control.Cancel:
			p.end(v, job.Cancelled, job.ExitCode{Signal: 15}, by.Name)
		case control.Hold:
			v.Job.Flags |= job.Held
			v.Why.Code = reason.HeldUser
			if op.Admin {
				v.Why.Code = reason.HeldAdmin
			}
			if !op.On {
				v.Job.Flags &^= job.Held
				v.Why.Code = reason.Priority
			}
			p.emit(state.Event{Kind: state.EventHeld, Job: id, Name: v.Job.Name(), User: v.Job.Spec.Owner.User, By: by.Name})
		}
	}
	return errs, nil
}

// finish ends a job.
func (p *plane) finish(id job.ID, st job.State, exit job.ExitCode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(p.get(id), st, exit, "")
}

func (p *plane) end(v *state.View, st job.State, exit job.ExitCode, by string) {
	v.Job.State, v.Job.Exit, v.Job.Ended = st, exit, time.Now()
	p.emit(state.Event{Kind: state.EventEnded, Job: v.Job.ID, Name: v.Job.Name(), User: v.Job.Spec.Owner.User, State: st.String(), Exit: &exit, By: by})
}

// start lets a job run on a node.
func (p *plane) start(id job.ID, node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.get(id)
	v.Job.State, v.Job.Attempt, v.Job.Started = job.Running, 1, time.Now()
	v.Claims = []fleet.Claim{{Node: node, Tasks: 1, Take: resource.Vector{CPU: resource.CPUs(2), Memory: resource.GiB}, Devices: []fleet.DeviceClaim{{Index: 0}}}}
	p.emit(state.Event{Kind: state.EventStarted, Job: id, Name: v.Job.Name(), User: v.Job.Spec.Owner.User, State: "RUNNING"})
}

// forget takes a job out of memory.
func (p *plane) forget(id job.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs = slices.DeleteFunc(p.jobs, func(v *state.View) bool { return v.Job.ID == id })
}

// purge forgets all events but the last n.
func (p *plane) purge(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cut := len(p.all) - n
	p.all, p.kept = p.all[cut:], p.kept+cut
}

func (p *plane) get(id job.ID) *state.View {
	i, ok := slices.BinarySearchFunc(p.jobs, id, func(v *state.View, id job.ID) int { return int(v.Job.ID) - int(id) })
	if !ok {
		return nil
	}
	return p.jobs[i]
}

func (p *plane) Scan(fl query.Filter, f func(*state.View) bool) {
	p.mu.Lock()
	p.scans++
	p.mu.Unlock()
	p.mu.RLock()
	defer p.mu.RUnlock()
	i, _ := slices.BinarySearchFunc(p.jobs, fl.After+1, func(v *state.View, id job.ID) int { return int(v.Job.ID) - int(id) })
	var view state.View
	var spec job.Spec
	for _, v := range p.jobs[max(i, p.late):] {
		if p.left[v.Job.ID] || p.leaves == v.Job.ID || fl.Live && v.Job.State.Final() || len(fl.Users) > 0 && !slices.Contains(fl.Users, v.Job.Spec.Owner.User) {
			continue
		}
		view, spec = *v, *v.Job.Spec // valid during the call only
		view.Job.Spec = &spec
		more := f(&view)
		spec, view = job.Spec{Name: "KEPT TOO LONG"}, state.View{Message: "KEPT TOO LONG"}
		if !more {
			return
		}
	}
}

func (p *plane) Job(_ context.Context, id job.ID) (state.View, error) {
	p.asked.Add(1)
	p.mu.RLock()
	defer p.mu.RUnlock()
	v := p.get(id)
	if v == nil {
		return state.View{}, fault.New(fault.NotFound, "there is no job %d", id)
	}
	return *v, nil
}

func (p *plane) Find(_ context.Context, array job.ID, task uint32) (state.View, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, v := range p.jobs {
		if v.Job.Array != nil && v.Job.Array.Job == array && v.Job.Array.Index == task {
			return *v, nil
		}
	}
	return state.View{}, fault.New(fault.NotFound, "there is no job %d_%d", array, task)
}

func (p *plane) TaskOf(_ context.Context, array job.ID) (state.View, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, v := range p.jobs {
		if v.Job.Array != nil && v.Job.Array.Job == array {
			return *v, nil
		}
	}
	return state.View{}, fault.New(fault.NotFound, "there is no job %d", array)
}

func (p *plane) Tasks(id job.ID) (out []job.ID) {
	p.Scan(query.Filter{After: id - 1}, func(v *state.View) bool {
		if v.Job.ID != id && (v.Job.Array == nil || v.Job.Array.Job != id) {
			return false
		}
		out = append(out, v.Job.ID)
		return v.Job.Array != nil
	})
	if p.leaves != 0 {
		out = append(out, p.leaves)
	}
	return out
}

func (p *plane) Why(_ context.Context, id job.ID) (query.Why, error) {
	v, err := p.Job(context.Background(), id)
	return query.Why{Reasons: []reason.Reason{v.Why}, Since: time.Unix(1e9, 0)}, err
}

func (p *plane) NodeViews(context.Context) ([]query.NodeView, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Clone(p.nodes), nil
}

func (p *plane) Moves(context.Context) (query.Moves, error) {
	return query.Moves{Mode: account.DefragOff}, nil
}

func (p *plane) ApproveMoves(context.Context, job.Actor, string) error {
	return fault.New(fault.NotFound, "no moves are proposed")
}

func (p *plane) SetNodes(_ context.Context, by job.Actor, names []string, drain bool, why string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.nodes {
		if slices.Contains(names, p.nodes[i].Node.Name) {
			p.nodes[i].Node.State, p.nodes[i].Drained = fleet.Up, nil
			if drain {
				p.nodes[i].Node.State, p.nodes[i].Drained = fleet.Draining, &state.Drain{By: by, Reason: why, At: time.Unix(1e9, 0)}
			}
		}
	}
	p.emit(state.Event{Kind: state.EventDrained, Nodes: names, By: by.Name})
	return nil
}

func (p *plane) Events(ctx context.Context, after uint64) ([]state.Event, uint64, bool, error) {
	for {
		p.mu.RLock()
		wake, last := p.wake, uint64(p.kept+len(p.all))
		if after < last {
			gap := after < uint64(p.kept)
			evs := slices.Clone(p.all[max(int(after)-p.kept, 0):])
			p.mu.RUnlock()
			return evs, last, gap, nil
		}
		p.mu.RUnlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, after, false, ctx.Err()
		}
	}
}

func (p *plane) LastEvent() uint64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return uint64(p.kept + len(p.all))
}

func (p *plane) PutToken(_ context.Context, _ job.Actor, t state.Token) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens[t.ID] = t
	return nil
}

func (p *plane) RevokeToken(_ context.Context, _ job.Actor, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tokens[id]
	t.Revoked = time.Now()
	p.tokens[id] = t
	return nil
}

func (p *plane) Tokens(context.Context) (out []state.Token, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, t := range p.tokens {
		out = append(out, t)
	}
	return out, nil
}

func (p *plane) TokenByID(id string) (state.Token, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	t, ok := p.tokens[id]
	return t, ok
}

func (p *plane) History(_ context.Context, q store.Query, f func(*state.View) bool) (uint64, error) {
	p.dug.Add(1)
	p.mu.RLock()
	defer p.mu.RUnlock()
	n := 0
	for _, v := range slices.Backward(p.jobs[:len(p.jobs)-p.late]) {
		id := uint64(v.Job.ID)
		if q.Below != 0 && id >= q.Below || len(q.IDs) > 0 && !slices.Contains(q.IDs, id) ||
			len(q.Users) > 0 && !slices.Contains(q.Users, v.Job.Spec.Owner.User) ||
			q.Array != 0 && (v.Job.Array == nil || uint64(v.Job.Array.Job) != q.Array) {
			continue
		}
		if n++; !f(v) || n == q.Limit {
			return id, nil
		}
	}
	return 0, nil
}

func (p *plane) Audit(_ context.Context, q store.RecordQuery, f func(store.Record) error) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	n := 0
	for _, r := range p.audit {
		if !q.Match(&r) || q.Limit > 0 && n == q.Limit {
			continue
		}
		n++
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

func (p *plane) Flight(context.Context) (*snapshot.File, error) {
	return &snapshot.File{State: sched.New(sched.Config{}).Snapshot()}, nil
}

func (p *plane) WhatIf(context.Context, *query.WhatIf) (*query.WhatIfDone, error) {
	return &query.WhatIfDone{Now: time.Unix(1e9, 0)}, nil
}

func (p *plane) Backup(context.Context, string) (uint64, error) { return 7, nil }

func (p *plane) Blob(_ context.Context, hash string) ([]byte, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	b, ok := p.blobs[hash]
	if !ok {
		return nil, fault.New(fault.NotFound, "no blob has the hash %s", hash)
	}
	return b, nil
}

func (p *plane) Stats() query.Stats {
	return query.Stats{
		Jobs: map[string]int{"PENDING": 3}, Waiting: map[string]int{"priority": 2}, Started: 4, Ended: map[string]uint64{"COMPLETED": 1},
		Wait: state.Histogram{Bounds: []float64{1, 10}, Counts: []uint64{1, 2, 3}, Sum: 70, Count: 6},
	}
}

// fill submits n jobs of a user without reading any text.
func (p *plane) fill(t testing.TB, n int, user string, uid uint32, array *job.ArraySpec) job.ID {
	t.Helper()
	var first job.ID
	for i := range n {
		got, err := p.Submit(t.Context(), control.Submission{Spec: &job.Spec{
			Name: "job" + strconv.Itoa(i), Owner: job.Owner{User: user, UID: uid}, Partitions: []string{"main"}, Array: array,
			Groups:    []job.TaskGroup{{Nodes: job.Range{Min: 2, Max: 2}, Tasks: job.Count{Want: 2}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(2), Memory: resource.GiB}}}},
			TimeLimit: time.Hour, WorkDir: "/home/" + user, Program: job.Program{Kind: job.Batch}, Output: job.Output{Stdout: "out-%j"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = got.ID
		}
	}
	return first
}

func (p *plane) SetPolicy(_ context.Context, by job.Actor, ch control.PolicyChange) (state.Policy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := uint64(len(p.rules))
	if ch.Base != nil && *ch.Base != now {
		return state.Policy{}, fault.New(fault.Conflict, "the policy is at revision %d", now)
	}
	if now > 0 && p.rules[now-1].Text == ch.Text {
		return p.rules[now-1], nil
	}
	p.rules = append(p.rules, state.Policy{
		Revision: now + 1, At: time.Unix(1e9, 0), By: by, File: ch.File, Note: ch.Note, Back: ch.Back, Hash: store.Hash([]byte(ch.Text)), Text: ch.Text, Rules: ch.Rules,
	})
	return p.rules[now], nil
}

func (p *plane) Policy(_ context.Context, rev uint64) (state.Policy, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	switch n := uint64(len(p.rules)); {
	case rev > n:
		return state.Policy{}, fault.New(fault.NotFound, "there is no revision %d", rev)
	case n == 0:
		return state.Policy{Rules: &account.Policy{}}, nil
	case rev == 0:
		return p.rules[n-1], nil
	}
	return p.rules[rev-1], nil
}

func (p *plane) Reservable(_ context.Context, ask *query.ReserveAsk) ([]string, []query.Obstacle, []query.Promised) {
	return ask.Nodes, nil, nil
}

func (p *plane) Quotas(context.Context) []query.Holding { return nil }

func (p *plane) Shares(context.Context) ([]query.Standing, []string) { return nil, nil }

func (p *plane) Priorities(context.Context, ...job.ID) []query.Priority { return nil }

func (p *plane) PriorityOf(_ context.Context, id job.ID) (query.Priority, error) {
	return query.Priority{Job: id}, nil
}

func (p *plane) Policies(context.Context) (out []state.Policy, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, v := range p.rules {
		v.Text, v.Rules = "", nil
		out = append(out, v)
	}
	return out, nil
}

func (p *plane) AddedEngine(pool string) engine.Engine { return p.added[pool] }

func (p *plane) Pools() []pools.View {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.pools
}

func (p *plane) AddPool(_ context.Context, by job.Actor, s state.PoolSpec) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "add pool "+s.Name)
	s.By = by
	p.pools = append(slices.Clone(p.pools), pools.View{Pool: fleet.Pool{Name: s.Name, Engine: s.Engine}, Added: &s})
	return p.fail
}

func (p *plane) RemovePool(_ context.Context, _ job.Actor, name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "remove pool "+name)
	return p.fail
}

func (p *plane) CheckPool(_ context.Context, s state.PoolSpec) (*pools.Check, error) {
	return p.RecheckPool(context.Background(), s.Name)
}

func (p *plane) RecheckPool(context.Context, string) (*pools.Check, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return &pools.Check{Findings: p.findings}, p.fail
}
