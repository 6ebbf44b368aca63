package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/service/handover/controller"
	"github.com/coxswain-sched/coxswain/service/nodehealth"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// Handovers is a run of two pools, a and b, whose engines have nodes on the same machines, while machines are
// handed over at random: calls are lost, late and repeated, agents fall silent, administrators drain, others start
// work of their own, and servers die at writes of the journal. A judge looks at the engines themselves: work of
// both is never on one machine, both never take new work there, no job runs twice at a time, and when nothing
// more goes wrong every job ends and every machine comes to rest. Checks run beside: a node or a device that goes bad is
// fenced, nothing begins on it from that record on, no hand-over ends with it, and it returns by itself.
//
// It has no gates: the same seed draws the same requests and faults, but which goroutine comes first is not
// its own.
type Handovers struct {
	Seed       uint64
	For        time.Duration // until nothing more goes wrong; 0: 6 minutes
	CrashAt    int           // the server dies at the write of the journal of that number; 0: at random
	CrashAfter bool          // … after it
}

// handovers is such a run.
type handovers struct {
	opt    Handovers
	worlds map[string]*fake.World
	store  store.Memory

	mu      sync.Mutex // guards what follows
	d       *rand.Rand
	calm    bool
	running map[engine.Ref]handed                 // attempts that live, by what really is
	foreign map[string]string                     // work of others that lives → its node
	bad     map[string]string                     // node whose check fails → "disk" or "devices"
	unfit   map[fleet.NodeKey][]fleet.HealthFence // as the journal has them
	writes  int
	out     Result

	dead    chan struct{}
	stop    func()
	control *control.Control
	moves   *controller.Controller
	jobs    []job.ID
}

// handed is an attempt that lives.
type handed struct {
	pool  string
	nodes []string
}

// machines of the run; node a1 of pool a is on machine m1.
var handedMachines = []string{"m1", "m2", "m3"}

// RunHandovers runs it. It must be called in a bubble of testing/synctest.
func RunHandovers(opt Handovers) Result {
	if opt.For == 0 {
		opt.For = 6 * time.Minute
	}
	h := &handovers{
		opt: opt, worlds: map[string]*fake.World{}, d: rand.New(rand.NewPCG(opt.Seed, 28)), stop: func() {}, //nolint:gosec // no secret
		running: map[engine.Ref]handed{}, bad: map[string]string{}, unfit: map[fleet.NodeKey][]fleet.HealthFence{}, foreign: map[string]string{}, out: Result{Seed: opt.Seed, Seen: map[string]int{}},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var engines sync.WaitGroup
	for i, pool := range []string{"a", "b"} {
		h.worlds[pool] = fake.NewWorld(h.engineConfig(pool))
		if i == 1 { // an administrator has closed the second pool's nodes before
			e := h.worlds[pool].Open()
			for _, m := range handedMachines {
				_ = e.Fence(ctx, pool+m[1:], engine.NodeFence{Epoch: 1, Reason: "before"}) // a fake with no faults yet
			}
			_ = e.Close()
		}
		w := h.worlds[pool]
		engines.Go(func() { w.Run(ctx) })
	}
	h.startServer()
	for start := time.Now(); time.Since(start) < opt.For && len(h.out.Broken) == 0; {
		h.pass()
		h.disturb()
	}
	h.settle()
	h.stop()
	cancel()
	engines.Wait()
	h.out.Writes = h.writes
	return h.out
}

// engineConfig is the engine of a pool.
func (h *handovers) engineConfig(pool string) fake.Config {
	var nodes []fleet.Node
	for _, m := range handedMachines {
		nodes = append(nodes, fleet.Node{
			Name: pool + m[1:], Hosts: []string{m}, State: fleet.Up,
			Capacity: resource.Vector{CPU: resource.CPUs(4), Memory: 64 * resource.GiB},
			Devices:  []fleet.Device{{Index: 0, Minor: 0, Kind: "gpu", Type: "h100", UUID: pool + m + "-0"}, {Index: 1, Minor: 1, Kind: "gpu", Type: "h100", UUID: pool + m + "-1"}},
		})
	}
	return fake.Config{
		Now: time.Now, Nodes: nodes,
		Script: func(*engine.Launch) fake.Outcome {
			h.mu.Lock()
			defer h.mu.Unlock()
			return fake.Outcome{Ready: time.Duration(h.d.IntN(2000)) * time.Millisecond, Run: time.Duration(1+h.d.IntN(60)) * time.Second}
		},
		Fault:  func(c fake.Call) (before, after error) { return h.drawCallFault(pool, &c) },
		Truth:  func(r engine.Report) { h.noteTruth(pool, &r) },
		Checks: h.checkNode,
	}
}

// checkNode is what the checks of a node see.
func (h *handovers) checkNode(node string) ([]fleet.CheckResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := 1
	out := []fleet.CheckResult{{Check: "disk", Verdict: fleet.Passed}, {Check: "devices", Device: &one, UUID: node[:1] + "m" + node[1:] + "-1", Verdict: fleet.Passed}}
	for i := range out {
		if h.bad[node] == out[i].Check {
			out[i].Verdict, out[i].Text = fleet.Failed, "bad"
		}
	}
	return out, nil
}

// noteRecord looks at what the journal says next: nothing begins on a node or a device that checks have fenced, and no
// hand-over ends while a check closes the whole node of its new pool. The caller holds the lock.
func (h *handovers) noteRecord(r *store.Record) {
	switch r.Kind {
	case state.KindHealth:
		var v state.NodeHealth
		if json.Unmarshal(r.Data, &v) == nil {
			if len(v.Fences) > len(h.unfit[v.Key()]) {
				h.out.Seen["a check fences"]++
			} else {
				h.out.Seen["a fence of a check goes"]++
			}
			h.unfit[v.Key()] = v.Fences
		}
	case state.KindHeld:
		var v state.Held
		_ = json.Unmarshal(r.Data, &v)
		for i := range v.Allocation.Claims {
			c := &v.Allocation.Claims[i]
			for _, f := range h.unfit[fleet.NodeKey{Pool: v.Allocation.Pool, Name: c.Node}] {
				if f.Device == nil || slices.ContainsFunc(c.Devices, func(d fleet.DeviceClaim) bool { return d.Index == *f.Device }) {
					h.breakRule(model.Owner, "fenced", "job %d gets node %s with devices %v, and %s", v.Allocation.Job, c.Node, c.Devices, f.String())
				}
			}
		}
	case state.KindOwner:
		var v state.OwnersSet
		_ = json.Unmarshal(r.Data, &v)
		for _, o := range v.Owners {
			if o.Step == fleet.StepCheck && !strings.Contains(o.Evidence, " checks passed") {
				h.breakRule(model.Owner, "checked", "the hand-over of machine %s is checked: %s", o.Machine, o.Evidence)
			}
		}
	}
}

// drawCallFault is what becomes of a call.
func (h *handovers) drawCallFault(pool string, c *fake.Call) (before, after error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	marks := c.Name == "fence" || c.Name == "unfence"
	if h.control == nil || h.calm || !marks && c.Name != "empty" && c.Name != "nodes" {
		return nil, nil
	}
	lost := fault.New(fault.Unavailable, "the engine of pool %s does not answer", pool)
	switch chance := h.d.IntN(20); {
	case chance == 0:
		h.out.Seen["a call is lost"]++
		return lost, nil
	case chance <= 3 && marks:
		h.out.Seen["a call is late"]++
		return fake.Late(lost), nil
	case chance <= 5 && marks:
		h.out.Seen["an answer is lost"]++
		return nil, lost
	}
	return nil, nil
}

// noteTruth hears of every change of an attempt.
func (h *handovers) noteTruth(pool string, r *engine.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Phase == engine.Ended {
		delete(h.running, r.Ref)
		return
	}
	now := handed{pool: pool}
	for _, n := range r.Nodes {
		now.nodes = append(now.nodes, n.Node)
	}
	h.running[r.Ref] = now
}

// noteSeen counts what happened.
func (h *handovers) noteSeen(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.out.Seen[what]++
}

// setControl sets the control plane; nil: no server runs.
func (h *handovers) setControl(c *control.Control) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.control = c
}

// breakRule notes what the judge found. The caller holds the lock.
func (h *handovers) breakRule(p model.Promise, rule, format string, args ...any) {
	h.out.Broken = append(h.out.Broken, model.Violation{Promise: p, Rule: rule, Text: fmt.Sprintf(format, args...)})
}

// judge looks at the engines.
func (h *handovers) judge() {
	open := map[string][]string{} // machine → nodes that take new work
	for pool, w := range h.worlds {
		for _, m := range handedMachines {
			if _, fenced := w.FenceOf(pool + m[1:]); !fenced {
				open[m] = append(open[m], pool+m[1:])
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	on := map[string]map[string]string{} // machine → pool → work there
	put := func(node, what string) {
		m := "m" + node[1:]
		if on[m] == nil {
			on[m] = map[string]string{}
		}
		on[m][node[:1]] = what
	}
	for ref, r := range h.running {
		for _, n := range r.nodes {
			put(n, "attempt "+ref.String())
		}
	}
	for what, node := range h.foreign {
		put(node, what)
	}
	for _, m := range handedMachines {
		if len(on[m]) > 1 {
			h.breakRule(model.Owner, "both", "machine %s has %s of pool a and %s of pool b", m, on[m]["a"], on[m]["b"])
		}
		if len(open[m]) > 1 {
			slices.Sort(open[m])
			h.breakRule(model.Owner, "open", "machine %s takes new work of both pools, on %s", m, strings.Join(open[m], " and "))
		}
	}
}

// pass lets a moment go by, judges, and starts the next server where one died.
func (h *handovers) pass() {
	time.Sleep(500 * time.Millisecond) // of the bubble
	synctest.Wait()
	h.judge()
	select {
	case <-h.dead:
	default:
		if h.control != nil {
			return
		}
	}
	h.noteSeen("a server dies")
	h.stop()
	h.startServer()
}

// disturb is what happens beside: requests, and everything that goes wrong.
func (h *handovers) disturb() {
	h.mu.Lock()
	draw := func(n int) int { return h.d.IntN(n) }
	chance, pool, m, name, far := draw(24), []string{"a", "b"}[draw(2)], handedMachines[draw(3)], draw(1000), draw(2) == 0
	h.mu.Unlock()
	w, node := h.worlds[pool], pool+m[1:]
	switch chance {
	case 0, 1:
		h.moveMachine(m, far)
	case 2:
		if far && h.control != nil {
			_, _ = h.moves.Abort(context.Background(), job.Actor{Name: "root"}, []string{m}) // it may be too late
			h.noteSeen("a hand-over is aborted")
		}
	case 3, 4, 5:
		h.submit(pool, far)
	case 6, 7:
		what := fmt.Sprintf("pod-%d", name)
		if _, there := h.foreign[what]; there || w.StartForeign(node, engine.NodeWork{Kind: "pod", Name: what}, false) != nil {
			return
		}
		h.foreign[what] = node
		h.noteSeen("others start work")
	case 8, 9, 10:
		for _, what := range slices.Sorted(maps.Keys(h.foreign)) {
			h.worlds[h.foreign[what][:1]].EndForeign(h.foreign[what], what)
			delete(h.foreign, what)
			return
		}
	case 11:
		w.Silence(node)
		h.noteSeen("an agent is silent")
	case 12, 13:
		w.Return(node)
	case 14:
		_ = w.Arrive() // nobody hears the answers
	case 15:
		w.Drain(node, "new fan")
		h.noteSeen("an administrator drains")
	case 16, 17:
		w.Drain(node, "")
	case 19, 20:
		h.setBad(node, []string{"disk", "devices"}[name%2])
	case 21:
		h.setBad(node, "")
	case 18:
		if far {
			h.kill()
		}
	}
}

// setBad has a check of a node fail from now on; empty: none.
func (h *handovers) setBad(node, check string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bad[node] = check; check != "" {
		h.out.Seen["a node goes bad"]++
	}
}

// kill has the server write nothing more: it is replaced with the next moment.
func (h *handovers) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.dead:
	default:
		close(h.dead)
	}
}

// moveMachine asks for a hand-over to the other pool.
func (h *handovers) moveMachine(m string, now bool) {
	if h.control == nil {
		return
	}
	o, ok := h.control.MachineOwner(m)
	if !ok || o.Moving() && !o.Step.Reached(fleet.StepAdmit) {
		return
	}
	to := "a"
	if o.Pool == "a" {
		to = "b"
	}
	out, err := h.moves.Move(context.Background(), job.Actor{Name: "root"}, controller.Request{Nodes: []string{m}, To: to, Requeue: now, Deadline: 3 * time.Minute})
	if err == nil && out[0].Err == nil {
		h.noteSeen("a hand-over begins")
	}
}

// submit submits a job for a pool.
func (h *handovers) submit(pool string, again bool) {
	if h.control == nil {
		return
	}
	spec := &job.Spec{
		Name: "x", Owner: job.Owner{User: "ann", UID: 1000}, WorkDir: "/work", Program: job.Program{Kind: job.Direct, Args: []string{"x"}}, Pool: pool, Requeue: again,
		TimeLimit: 5 * time.Minute, Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(2)}}}},
	}
	if len(h.jobs)%3 == 0 {
		spec.Groups[0].PerTask.Devices = []resource.DeviceRequest{{Count: 1}}
	}
	if a, err := h.control.Submit(context.Background(), control.Submission{Spec: spec, By: job.Actor{Name: "ann", UID: 1000}}); err == nil {
		h.jobs = append(h.jobs, a.ID)
	}
}

// handedDisk is the store as one server sees it.
type handedDisk struct {
	store.Store
	h    *handovers
	dead chan struct{}
}

// errDied is what a server hears that died.
var errDied = fault.New(fault.Unavailable, "this server was killed")

// Append writes, unless the server is dead or dies with this write.
func (d *handedDisk) Append(ctx context.Context, epoch uint64, recs []store.Record) (last uint64, err error) {
	h := d.h
	select {
	case <-d.dead:
		return 0, errDied
	default:
	}
	if len(recs) == 0 {
		return d.Store.Append(ctx, epoch, recs)
	}
	h.mu.Lock()
	h.writes++
	die, after := h.opt.CrashAt == h.writes, h.opt.CrashAfter
	if h.opt.CrashAt == 0 && !h.calm && h.d.IntN(60) == 0 {
		die, after = true, h.d.IntN(2) == 0
	}
	h.mu.Unlock()
	if !die || after {
		if last, err = d.Store.Append(ctx, epoch, recs); err == nil {
			h.mu.Lock()
			for i := range recs {
				h.noteRecord(&recs[i])
			}
			h.mu.Unlock()
		}
	}
	if die {
		h.mu.Lock()
		defer h.mu.Unlock()
		select {
		case <-d.dead:
		default:
			close(d.dead)
		}
		return 0, errDied
	}
	return last, err
}

// startServer starts a server.
func (h *handovers) startServer() {
	h.dead = make(chan struct{})
	cfg := control.Config{Store: &handedDisk{&h.store, h, h.dead}, Who: "server", Grace: time.Second, Keep: time.Hour, Project: 5 * time.Second}
	var engines []*fake.Engine
	for _, pool := range []string{"a", "b"} {
		e := h.worlds[pool].Open()
		engines = append(engines, e)
		cfg.Pools = append(cfg.Pools, pools.Pool{Pool: fleet.Pool{Name: pool, Engine: "fake"}, Engine: e})
	}
	closeEngines := func() {
		for _, e := range engines {
			_ = e.Close()
		}
	}
	c, err := control.Open(context.Background(), cfg)
	if err != nil { // it died on the way, or no engine answered
		closeEngines()
		h.stop = func() {}
		h.setControl(nil)
		return
	}
	h.setControl(c)
	monitor := nodehealth.New(nodehealth.Config{Plane: nodehealth.NewPlane(c, map[string]engine.Engine{"a": engines[0], "b": engines[1]}), Rules: nodehealth.Rules{Failures: 1, Passes: 2}, Every: 20 * time.Second})
	h.moves = controller.New(controller.Config{Plane: controller.NewPlane(c), Check: monitor.CheckNow})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	moves := h.moves
	running.Go(func() { moves.Run(ctx) })
	running.Go(func() { monitor.Run(ctx) })
	h.stop = func() {
		cancel()
		running.Wait()
		_ = c.Close() // a dead one fails
		closeEngines()
		h.stop = func() {}
	}
}

// settle lets everything go well: all work ends, and all machines come to rest.
func (h *handovers) settle() {
	h.mu.Lock()
	h.calm = true
	clear(h.bad)
	h.mu.Unlock()
	for what, node := range h.foreign {
		h.worlds[node[:1]].EndForeign(node, what)
	}
	clear(h.foreign)
	for pool, w := range h.worlds {
		_ = w.Arrive()
		for _, m := range handedMachines {
			w.Return(pool + m[1:])
			w.Drain(pool+m[1:], "")
		}
	}
	asked := false
	for range 6000 {
		if len(h.out.Broken) > 0 {
			return
		}
		h.pass()
		switch why := h.unrest(); {
		case why == "" && asked:
			return
		case why == "" || h.control != nil && !asked && !h.anyMoving():
			asked = true
			h.moveApart()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.breakRule(model.Account, "rest", "after 50 minutes without faults: %s", h.unrestLocked())
}

// moveApart gives each pool a machine, so that jobs of both can run.
func (h *handovers) moveApart() {
	for m, to := range map[string]string{"m1": "a", "m2": "b"} {
		_, _ = h.moves.Move(context.Background(), job.Actor{Name: "root"}, controller.Request{Nodes: []string{m}, To: to}) // it may be there
	}
}

func (h *handovers) anyMoving() bool {
	return slices.ContainsFunc(h.control.MachineOwners(context.Background()), func(o fleet.MachineOwner) bool { return o.Moving() })
}

// unrest tells what has not come to rest; empty: nothing.
func (h *handovers) unrest() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unrestLocked()
}

func (h *handovers) unrestLocked() string {
	if h.control == nil {
		return "no server runs"
	}
	for _, o := range h.control.MachineOwners(context.Background()) {
		if o.Moving() {
			return fmt.Sprintf("machine %s is at step %s from %s to %s, back %v, and waits for %q", o.Machine, o.Step, o.Pool, o.Next, o.Back, o.Waits)
		}
		if f, fenced := h.worlds[o.Pool].FenceOf(o.Pool + o.Machine[1:]); fenced {
			return fmt.Sprintf("machine %s is pool %s's, and fenced there: %+v", o.Machine, o.Pool, f)
		}
	}
	for k, fences := range h.unfit {
		if len(fences) > 0 {
			return fmt.Sprintf("node %s passes its checks, and is fenced: %s", k, fences[0].String())
		}
	}
	for len(h.jobs) > 0 {
		id := h.jobs[0]
		v, err := h.control.Job(context.Background(), id)
		switch {
		case err != nil:
			return fmt.Sprintf("job %d is lost: %v", id, err)
		case !v.Job.State.Final():
			return fmt.Sprintf("job %d is %s: %s", id, v.Job.State, v.Why.String())
		case v.Job.State != job.Completed:
			return fmt.Sprintf("job %d is %s: %s", id, v.Job.State, v.Message)
		}
		h.jobs = h.jobs[1:]
	}
	return ""
}
