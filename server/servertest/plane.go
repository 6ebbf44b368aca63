package servertest

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

// Plane is a control plane that keeps jobs in a list and runs nothing. A test
// changes it through its methods, or through its fields before a server uses it; later Mu
// guards them.
type Plane struct {
	Mu   sync.RWMutex
	Jobs []*state.View // ascending by number
	next job.ID
	journal
	TokensByID   map[string]state.Token
	blobs        map[string][]byte
	Nodes        []query.NodeView
	AuditLog     []store.Record
	Changes      []string        // changes that came through, for tests
	Fail         error           // what Submit and Change answer instead
	Scans        int             // calls of Scan
	Left         map[job.ID]bool // memory: only the history has them
	Leaves       job.ID          // memory once Tasks has listed it
	JobCalls     atomic.Int64    // calls of Job
	HistoryCalls atomic.Int64    // calls of History
	Revisions    []state.Policy

	PoolViews []pools.View
	Findings  []engine.Finding // what a look at a pool finds
	Engines   map[string]engine.Engine
	StartFunc func(*job.Spec) time.Time     // when a job would start in the pool that it names
	FitsFunc  func(*job.Spec) (bool, error) // nil: everything fits everywhere
	Late      int                           // jobs that History does not have yet; as many of the oldest Scan does not
}

// journal is the plane's own numbering, with a first number that is kept.
type journal struct {
	all  []state.Event
	kept int // events that were dropped
	wake chan struct{}
}

// NewPlane makes a plane with one pool of four nodes and without jobs.
func NewPlane() *Plane {
	p := &Plane{
		PoolViews: []pools.View{{Pool: fleet.Pool{Name: "local", Engine: "local"}, Default: true, Nodes: 4, Devices: 4, Info: &engine.Info{Name: "local", Version: "1", Abilities: engine.Abilities{Gang: engine.GangStrict}}}},
		next:      1, TokensByID: map[string]state.Token{}, blobs: map[string][]byte{}, journal: journal{wake: make(chan struct{})},
	}
	for i := range 4 {
		p.Nodes = append(p.Nodes, query.NodeView{Node: fleet.Node{
			Name: fmt.Sprintf("v%d", i+1), Pool: "local", State: fleet.Up, Parts: []string{"main"},
			Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 32 * resource.GiB},
			Devices:  []fleet.Device{{Index: 0, Kind: "gpu", Type: "h100"}},
		}})
	}
	return p
}

func (p *Plane) Emit(e state.Event) {
	e.Seq, e.At = uint64(p.kept+len(p.all)+1), time.Now()
	p.all = append(p.all, e)
	close(p.wake)
	p.wake = make(chan struct{})
}

func (p *Plane) Submit(_ context.Context, s control.Submission) (control.Accepted, error) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if p.Fail != nil {
		return control.Accepted{}, p.Fail
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
		p.Jobs = append(p.Jobs, v)
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
	p.Emit(state.Event{Kind: state.EventSubmitted, Job: first, Name: first.String(), Count: out.Tasks, User: spec.Owner.User, By: s.By.Name})
	p.AuditLog = append(p.AuditLog, store.Record{Seq: uint64(len(p.AuditLog) + 1), At: time.Now(), Kind: "submitted", Job: uint64(first), By: store.Actor(s.By), Data: []byte(`{"spec":{"env":{"hash":"x"}},"hash":"secret"}`)})
	return out, nil
}

func (p *Plane) Estimate(context.Context, control.Submission) (control.Estimate, error) {
	return control.Estimate{Start: time.Unix(1e9, 0), Nodes: []string{"v1"}}, nil
}

func (p *Plane) Fits(_ context.Context, s control.Submission) (bool, error) {
	if p.FitsFunc == nil {
		return true, nil
	}
	return p.FitsFunc(s.Spec)
}

// ExpectedIn is StartFunc's answer; nobody knows anything without it.
func (p *Plane) ExpectedIn(_ context.Context, d *engine.JobDraft, _ job.ID) query.PoolStart {
	out := query.PoolStart{Pool: d.Spec.Pool}
	if p.StartFunc != nil {
		out.Start = p.StartFunc(d.Spec)
	}
	return out
}

func (p *Plane) Change(_ context.Context, by job.Actor, ids []job.ID, op control.Op) ([]error, error) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if p.Fail != nil {
		return nil, p.Fail
	}
	errs := make([]error, len(ids))
	p.Changes = append(p.Changes, fmt.Sprintf("%s %T%+v %v", by.Name, op, op, ids))
	for i, id := range ids {
		v := p.Get(id)
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
			p.Emit(state.Event{Kind: state.EventHeld, Job: id, Name: v.Job.Name(), User: v.Job.Spec.Owner.User, By: by.Name})
		}
	}
	return errs, nil
}

// Finish ends a job.
func (p *Plane) Finish(id job.ID, st job.State, exit job.ExitCode) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.end(p.Get(id), st, exit, "")
}

func (p *Plane) end(v *state.View, st job.State, exit job.ExitCode, by string) {
	v.Job.State, v.Job.Exit, v.Job.Ended = st, exit, time.Now()
	p.Emit(state.Event{Kind: state.EventEnded, Job: v.Job.ID, Name: v.Job.Name(), User: v.Job.Spec.Owner.User, State: st.String(), Exit: &exit, By: by})
}

// Start lets a job run on a node.
func (p *Plane) Start(id job.ID, node string) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	v := p.Get(id)
	v.Job.State, v.Job.Attempt, v.Job.Started = job.Running, 1, time.Now()
	v.Claims = []fleet.Claim{{Node: node, Tasks: 1, Take: resource.Vector{CPU: resource.CPUs(2), Memory: resource.GiB}, Devices: []fleet.DeviceClaim{{Index: 0}}}}
	p.Emit(state.Event{Kind: state.EventStarted, Job: id, Name: v.Job.Name(), User: v.Job.Spec.Owner.User, State: "RUNNING"})
}

// Forget takes a job out of memory.
func (p *Plane) Forget(id job.ID) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Jobs = slices.DeleteFunc(p.Jobs, func(v *state.View) bool { return v.Job.ID == id })
}

// Purge forgets all events but the last n.
func (p *Plane) Purge(n int) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	cut := len(p.all) - n
	p.all, p.kept = p.all[cut:], p.kept+cut
}

func (p *Plane) Get(id job.ID) *state.View {
	i, ok := slices.BinarySearchFunc(p.Jobs, id, func(v *state.View, id job.ID) int { return int(v.Job.ID) - int(id) })
	if !ok {
		return nil
	}
	return p.Jobs[i]
}

func (p *Plane) Scan(fl query.Filter, f func(*state.View) bool) {
	p.Mu.Lock()
	p.Scans++
	p.Mu.Unlock()
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	i, _ := slices.BinarySearchFunc(p.Jobs, fl.After+1, func(v *state.View, id job.ID) int { return int(v.Job.ID) - int(id) })
	var view state.View
	var spec job.Spec
	for _, v := range p.Jobs[max(i, p.Late):] {
		if p.Left[v.Job.ID] || p.Leaves == v.Job.ID || fl.Live && v.Job.State.Final() || len(fl.Users) > 0 && !slices.Contains(fl.Users, v.Job.Spec.Owner.User) {
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

func (p *Plane) Job(_ context.Context, id job.ID) (state.View, error) {
	p.JobCalls.Add(1)
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	v := p.Get(id)
	if v == nil {
		return state.View{}, fault.New(fault.NotFound, "there is no job %d", id)
	}
	return *v, nil
}

func (p *Plane) Find(_ context.Context, array job.ID, task uint32) (state.View, error) {
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	for _, v := range p.Jobs {
		if v.Job.Array != nil && v.Job.Array.Job == array && v.Job.Array.Index == task {
			return *v, nil
		}
	}
	return state.View{}, fault.New(fault.NotFound, "there is no job %d_%d", array, task)
}

func (p *Plane) TaskOf(_ context.Context, array job.ID) (state.View, error) {
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	for _, v := range p.Jobs {
		if v.Job.Array != nil && v.Job.Array.Job == array {
			return *v, nil
		}
	}
	return state.View{}, fault.New(fault.NotFound, "there is no job %d", array)
}

func (p *Plane) Tasks(id job.ID) (out []job.ID) {
	p.Scan(query.Filter{After: id - 1}, func(v *state.View) bool {
		if v.Job.ID != id && (v.Job.Array == nil || v.Job.Array.Job != id) {
			return false
		}
		out = append(out, v.Job.ID)
		return v.Job.Array != nil
	})
	if p.Leaves != 0 {
		out = append(out, p.Leaves)
	}
	return out
}

func (p *Plane) Why(_ context.Context, id job.ID) (query.Why, error) {
	v, err := p.Job(context.Background(), id)
	return query.Why{Reasons: []reason.Reason{v.Why}, Since: time.Unix(1e9, 0)}, err
}

func (p *Plane) NodeViews(context.Context) ([]query.NodeView, error) {
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	return slices.Clone(p.Nodes), nil
}

func (p *Plane) MarkedMachines() (out []query.MarkedMachine) {
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	for i := range p.Nodes {
		n := p.Nodes[i].Node
		for _, m := range n.Machines() {
			owner := fleet.MachineOwner{Machine: m, Pool: n.Pool}
			if o := p.Nodes[i].Owner; o != nil {
				owner = *o
			}
			out = append(out, query.MarkedMachine{Owner: owner, Nodes: []query.NodeMarks{{Node: n, Engine: "local", Drained: p.Nodes[i].Drained}}})
		}
	}
	return out
}

func (p *Plane) Moves(context.Context) (query.Moves, error) {
	return query.Moves{Mode: account.DefragOff}, nil
}

func (p *Plane) ApproveMoves(context.Context, job.Actor, string) error {
	return fault.New(fault.NotFound, "no moves are proposed")
}

func (p *Plane) SetNodes(_ context.Context, by job.Actor, names []string, drain bool, why string) error {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	for i := range p.Nodes {
		if slices.Contains(names, p.Nodes[i].Node.Name) {
			p.Nodes[i].Node.State, p.Nodes[i].Drained = fleet.Up, nil
			if drain {
				p.Nodes[i].Node.State, p.Nodes[i].Drained = fleet.Draining, &state.Drain{By: by, Reason: why, At: time.Unix(1e9, 0)}
			}
		}
	}
	p.Emit(state.Event{Kind: state.EventDrained, Nodes: names, By: by.Name})
	return nil
}

func (p *Plane) Events(ctx context.Context, after uint64) ([]state.Event, uint64, bool, error) {
	for {
		p.Mu.RLock()
		wake, last := p.wake, uint64(p.kept+len(p.all))
		if after < last {
			gap := after < uint64(p.kept)
			evs := slices.Clone(p.all[max(int(after)-p.kept, 0):])
			p.Mu.RUnlock()
			return evs, last, gap, nil
		}
		p.Mu.RUnlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, after, false, ctx.Err()
		}
	}
}

func (p *Plane) LastEvent() uint64 {
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	return uint64(p.kept + len(p.all))
}

func (p *Plane) PutToken(_ context.Context, _ job.Actor, t state.Token) error {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	all := state.TokenSet(p.TokensByID)
	if t.Session {
		for _, id := range all.Surplus(t.UID, t.Created) {
			all.Revoke(id, t.Created)
		}
	}
	all.Put(t, t.Created)
	return nil
}

func (p *Plane) RevokeToken(_ context.Context, _ job.Actor, id string) error {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	all := state.TokenSet(p.TokensByID)
	for _, each := range append([]string{id}, all.Under(id)...) {
		all.Revoke(each, time.Now())
	}
	return nil
}

func (p *Plane) Tokens(context.Context) (out []state.Token, err error) {
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	for _, t := range p.TokensByID {
		out = append(out, t)
	}
	return out, nil
}

func (p *Plane) TokenByID(id string) (state.Token, bool) {
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	t, ok := p.TokensByID[id]
	return t, ok
}

func (p *Plane) History(_ context.Context, q store.Query, f func(*state.View) bool) (uint64, error) {
	p.HistoryCalls.Add(1)
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	n := 0
	for _, v := range slices.Backward(p.Jobs[:len(p.Jobs)-p.Late]) {
		id := uint64(v.Job.ID)
		if q.Below != 0 && id >= q.Below || len(q.IDs) > 0 && !slices.Contains(q.IDs, id) ||
			len(q.Users) > 0 && !slices.Contains(q.Users, v.Job.Spec.Owner.User) ||
			!q.MatchText(v.Job.Spec.Name, v.Job.Spec.Owner.User, v.Job.Spec.Account) ||
			q.Array != 0 && (v.Job.Array == nil || uint64(v.Job.Array.Job) != q.Array) {
			continue
		}
		if n++; !f(v) || n == q.Limit {
			return id, nil
		}
	}
	return 0, nil
}

func (p *Plane) HistoryInBrief(ctx context.Context, q store.Query, f func(*state.View) bool) error {
	_, err := p.History(ctx, q, f)
	return err
}

func (p *Plane) Audit(_ context.Context, q store.RecordQuery, f func(store.Record) error) error {
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	n := 0
	for _, r := range p.AuditLog {
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

func (p *Plane) Flight(context.Context) (*snapshot.File, error) {
	return &snapshot.File{State: sched.New(sched.Config{}).Snapshot()}, nil
}

func (p *Plane) Forecast(context.Context) (query.Forecast, error) { return query.Forecast{}, nil }

func (p *Plane) WhatIf(context.Context, *query.WhatIf) (*query.WhatIfDone, error) {
	return &query.WhatIfDone{Now: time.Unix(1e9, 0)}, nil
}

// Damages implements server.Plane.
func (p *Plane) Damages() []store.Damage { return nil }

// Backup implements server.Plane.
func (p *Plane) Backup(context.Context, string) (uint64, error) { return 7, nil }

func (p *Plane) Blob(_ context.Context, hash string) ([]byte, error) {
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	b, ok := p.blobs[hash]
	if !ok {
		return nil, fault.New(fault.NotFound, "no blob has the hash %s", hash)
	}
	return b, nil
}

func (p *Plane) Stats() query.Stats {
	return query.Stats{
		Jobs: map[string]int{"PENDING": 3}, Waiting: map[string]int{"priority": 2}, Started: 4, Ended: map[string]uint64{"COMPLETED": 1},
		Wait: state.Histogram{Bounds: []float64{1, 10}, Counts: []uint64{1, 2, 3}, Sum: 70, Count: 6},
	}
}

// Fill submits n jobs of a user without reading any text.
func (p *Plane) Fill(t testing.TB, n int, user string, uid uint32, array *job.ArraySpec) job.ID {
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

func (p *Plane) SetPolicy(_ context.Context, by job.Actor, ch control.PolicyChange) (state.Policy, error) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	now := uint64(len(p.Revisions))
	if ch.Base != nil && *ch.Base != now {
		return state.Policy{}, fault.New(fault.Conflict, "the policy is at revision %d", now)
	}
	if now > 0 && p.Revisions[now-1].Text == ch.Text {
		return p.Revisions[now-1], nil
	}
	p.Revisions = append(p.Revisions, state.Policy{
		Revision: now + 1, At: time.Unix(1e9, 0), By: by, File: ch.File, Note: ch.Note, Back: ch.Back, Hash: store.Hash([]byte(ch.Text)), Text: ch.Text, Rules: ch.Rules,
	})
	return p.Revisions[now], nil
}

func (p *Plane) Policy(_ context.Context, rev uint64) (state.Policy, error) {
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	switch n := uint64(len(p.Revisions)); {
	case rev > n:
		return state.Policy{}, fault.New(fault.NotFound, "there is no revision %d", rev)
	case n == 0:
		return state.Policy{Rules: &account.Policy{}}, nil
	case rev == 0:
		return p.Revisions[n-1], nil
	}
	return p.Revisions[rev-1], nil
}

func (p *Plane) Reservable(_ context.Context, ask *query.ReserveAsk) ([]string, []query.Obstacle, []query.Promised) {
	return ask.Nodes, nil, nil
}

func (p *Plane) Quotas(context.Context) []query.Holding { return nil }

// Seen: no pool is one node to the core.
func (p *Plane) Seen(string) ([]fleet.Node, bool) { return nil, false }

func (p *Plane) Shares(context.Context) ([]query.Standing, []string) { return nil, nil }

func (p *Plane) Priorities(context.Context, ...job.ID) []query.Priority { return nil }

func (p *Plane) PriorityOf(_ context.Context, id job.ID) (query.Priority, error) {
	return query.Priority{Job: id}, nil
}

func (p *Plane) Policies(context.Context) (out []state.Policy, err error) {
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	for _, v := range p.Revisions {
		v.Text, v.Rules = "", nil
		out = append(out, v)
	}
	return out, nil
}

// Fenced is none: nothing checks nodes here.
func (p *Plane) Fenced(string) []state.NodeHealth { return nil }

// Health is none.
func (p *Plane) Health(fleet.NodeKey) (h state.NodeHealth, known bool) { return h, false }

func (p *Plane) AddedEngine(pool string) engine.Engine { return p.Engines[pool] }

func (p *Plane) Pools() []pools.View {
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	return p.PoolViews
}

func (p *Plane) AddPool(_ context.Context, by job.Actor, s state.PoolSpec) error {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Changes = append(p.Changes, "add pool "+s.Name)
	s.By = by
	p.PoolViews = append(slices.Clone(p.PoolViews), pools.View{Pool: fleet.Pool{Name: s.Name, Engine: s.Engine}, Added: &s})
	return p.Fail
}

func (p *Plane) RemovePool(_ context.Context, _ job.Actor, name string, force bool) error {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	what := "remove pool " + name
	if force {
		what += " by force"
	}
	p.Changes = append(p.Changes, what)
	return p.Fail
}

func (p *Plane) CheckPool(_ context.Context, s state.PoolSpec) (*pools.Check, error) {
	return p.RecheckPool(context.Background(), s.Name)
}

func (p *Plane) RecheckPool(context.Context, string) (*pools.Check, error) {
	p.Mu.RLock()
	defer p.Mu.RUnlock()
	return &pools.Check{Findings: p.Findings}, p.Fail
}

// AddUploadPool adds a pool to which directories come with jobs, or not.
func (p *Plane) AddUploadPool(yes bool) {
	p.PoolViews = append(p.PoolViews, pools.View{Pool: fleet.Pool{Name: "k", Engine: "kube"}})
	p.Engines = map[string]engine.Engine{"k": receiver{yes: yes}}
}

// AddSlurmPools adds pools of Slurm to the plane's own.
func (p *Plane) AddSlurmPools(names ...string) {
	for _, n := range names {
		p.PoolViews = append(p.PoolViews, pools.View{
			Pool: fleet.Pool{Name: n, Engine: "slurm"}, Added: &state.PoolSpec{Name: n, Engine: "slurm"}, Answered: true, Delegated: true, Nodes: 8, Devices: 64,
			Info: &engine.Info{Name: "slurm", Version: "24.11", Abilities: engine.Abilities{Gang: engine.GangStrict, Delegated: true}},
		})
	}
}
