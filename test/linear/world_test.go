package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/store"
)

// world is everything that outlives a server: disk, engine, time, and chance.
type world struct {
	t      *testing.T
	mu     sync.Mutex
	rnd    *rand.Rand
	calm   atomic.Bool  // nothing fails any more
	shift  atomic.Int64 // of the clock, in nanoseconds
	stamps atomic.Int64 // order of everything that clients see
	disk   *store.Memory
	engine *network
	life   atomic.Pointer[life] // the server that leads
	before atomic.Pointer[life] // the one that was followed, as long as it lives
	lives  []*life              // all of them
	faults map[string]int
}

// life is one server from its start to its end.
type life struct {
	ctl    *control.Control
	disk   *disk
	opened int64       // stamp from which on it leads
	over   atomic.Bool // it was killed or followed: what it shows counts no more
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 4)), disk: new(store.Memory), faults: map[string]int{}}
	var nodes []fleet.Node
	for i := range 2 {
		n := fleet.Node{Name: fmt.Sprintf("n%d", i+1), State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8)}}
		for d := range 2 {
			n.Devices = append(n.Devices, fleet.Device{Index: d, Kind: "gpu", Type: "h100", NUMA: -1})
		}
		nodes = append(nodes, n)
	}
	w.engine = &network{w: w, Engine: fake.New(fake.Config{Now: w.Now, Nodes: nodes, Script: w.script, Fault: w.call})}
	return w
}

// n draws a number below n.
func (w *world) n(n int) int { w.mu.Lock(); defer w.mu.Unlock(); return w.rnd.IntN(n) }

// one is true once in n times, unless nothing fails any more; name is for the count.
func (w *world) one(n int, name string) bool {
	if w.calm.Load() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	hit := w.rnd.IntN(n) == 0
	if hit {
		w.faults[name]++
	}
	return hit
}

// stamp is a moment, later than every one before.
func (w *world) stamp() int64 { return w.stamps.Add(1) }

// Now and After are control.Clock, which is set now and then.
func (w *world) Now() time.Time { return time.Now().Add(time.Duration(w.shift.Load())) }

func (w *world) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// script decides what becomes of an attempt.
func (w *world) script(*engine.Launch) fake.Outcome {
	o := fake.Outcome{Ready: time.Duration(w.n(200)) * time.Millisecond, Run: time.Duration(w.n(2000)) * time.Millisecond}
	switch w.n(10) {
	case 0:
		o.FailNode = "n1"
	case 1:
		o.LoseNode, o.After = "n1", 50*time.Millisecond
	case 2, 3, 4:
		o.Run = fake.Never
	case 5:
		o.Exit.Code.Status = 3
	case 6:
		o.Resists = true
	}
	return o
}

// call loses calls of the engine and their answers, and lets others wait.
func (w *world) call(c fake.Call) (before, after error) {
	lost := fault.New(fault.Unavailable, "%s: no answer", c.Name)
	switch {
	case w.one(12, "call lost"):
		return lost, nil
	case w.one(12, "answer lost"):
		return nil, lost
	case w.one(6, "call slow"):
		time.Sleep(time.Duration(w.n(100)) * time.Millisecond)
	}
	return nil, nil
}

// network is the way to the engine: a launch may arrive after its caller gave it up.
type network struct {
	*fake.Engine
	w    *world
	late sync.WaitGroup
}

func (n *network) Launch(ctx context.Context, l *engine.Launch) error {
	if !n.w.one(10, "launch late") {
		return n.Engine.Launch(ctx, l)
	}
	wait := time.Duration(n.w.n(3000)) * time.Millisecond
	n.late.Go(func() {
		time.Sleep(wait)
		_ = n.Engine.Launch(context.Background(), l) // nobody waits for the answer
	})
	return fault.New(fault.Unavailable, "launch: no answer")
}

// disk is a store as one server sees it.
type disk struct {
	*store.Memory
	w     *world
	ready atomic.Bool // the server has opened
	dead  chan struct{}
	once  sync.Once
}

func (d *disk) die() { d.once.Do(func() { close(d.dead) }) }

// gone waits for the end of a server that was killed: no call of it returns.
func (d *disk) gone(ctx context.Context) error {
	select {
	case <-d.dead:
		<-ctx.Done()
		return fault.New(fault.Unavailable, "killed")
	default:
		return nil
	}
}

func (d *disk) Append(ctx context.Context, epoch uint64, recs []store.Record) (uint64, error) {
	if d.w.one(4, "disk slow") {
		time.Sleep(time.Duration(d.w.n(40)) * time.Millisecond)
	}
	if err := d.gone(ctx); err != nil {
		return 0, err
	}
	switch {
	case len(recs) == 0:
	case d.w.one(40, "killed before a write"):
		d.die()
		return 0, d.gone(ctx)
	case d.w.one(20, "disk full"):
		return 0, fault.New(fault.Exhausted, "no space left on device")
	case d.w.one(25, "write failed"):
		return 0, fault.New(fault.Unavailable, "input/output error")
	}
	last, err := d.Memory.Append(ctx, epoch, recs)
	switch {
	case err != nil || len(recs) == 0:
	case d.w.one(40, "killed after a write"):
		d.die()
		return 0, d.gone(ctx)
	case d.w.one(25, "write failed and is durable"):
		return 0, fault.New(fault.Unavailable, "input/output error")
	}
	return last, err
}

func (d *disk) Read(ctx context.Context, after uint64, f func(store.Record) error) error {
	if err := d.gone(ctx); err != nil {
		return err
	}
	if d.ready.Load() && d.w.one(3, "read failed") {
		return fault.New(fault.Unavailable, "input/output error")
	}
	return d.Memory.Read(ctx, after, f)
}

func (d *disk) Project(ctx context.Context, epoch, upTo uint64, rows []store.JobRow, docs map[string][]byte) error {
	if err := d.gone(ctx); err != nil {
		return err
	}
	if d.w.one(10, "projection failed") {
		return fault.New(fault.Exhausted, "no space left on device")
	}
	return d.Memory.Project(ctx, epoch, upTo, rows, docs)
}

// start begins a server, which leads from now on.
func (w *world) start() {
	l := &life{disk: &disk{Memory: w.disk, w: w, dead: make(chan struct{})}}
	if was := w.life.Load(); was != nil {
		was.over.Store(true)
	}
	var err error
	for l.ctl == nil { // as whoever starts servers does
		l.ctl, err = control.Open(context.Background(), control.Config{
			Store: l.disk, Pools: []pools.Pool{{Pool: fleet.Pool{Name: "p"}, Engine: w.engine}}, Clock: w, Grace: 100 * time.Millisecond,
			Backoff: time.Millisecond, Project: 20 * time.Millisecond, Keep: -1,
		})
		if err != nil && fault.KindOf(err) != fault.Unavailable {
			w.t.Errorf("a server does not start: %v", err)
			runtime.Goexit()
		}
	}
	l.disk.ready.Store(true)
	l.opened = w.stamp()
	w.mu.Lock()
	w.lives = append(w.lives, l)
	w.mu.Unlock()
	w.life.Store(l)
}

// end closes a server. One that was followed ends with the word of that.
func (w *world) end(l *life) {
	l.over.Store(true)
	if err := l.ctl.Close(); err != nil && fault.KindOf(err) != fault.Conflict {
		w.t.Errorf("a server ended: %v", err)
	}
}

// keep starts another server when one was killed, or while it lives, and sets the
// clock, until the clients have done.
func (w *world) keep(over <-chan struct{}) {
	for {
		l := w.life.Load()
		select {
		case <-l.disk.dead:
			w.end(l)
			time.Sleep(time.Duration(w.n(30)) * time.Millisecond)
			w.start()
		case <-time.After(time.Duration(100+w.n(400)) * time.Millisecond):
			switch {
			case w.one(4, "clock set"):
				w.shift.Store(int64(w.n(7200)-3600) * int64(time.Second))
			case w.one(6, "followed"):
				w.before.Store(l)
				w.start()
				time.Sleep(time.Duration(w.n(200)) * time.Millisecond)
				w.before.Store(nil)
				w.end(l)
			}
		case <-over:
			return
		}
	}
}
