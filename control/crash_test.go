package control_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/store"
)

// dying is a store under which the process dies at a write of the journal or of the
// projection: just before it is durable or just after, and no call of it returns then.
type dying struct {
	*store.Memory
	mu     sync.Mutex
	left   int  // writes until it dies
	before bool // the last one is not made
	dead   chan struct{}
}

func (d *dying) Append(ctx context.Context, epoch uint64, recs []store.Record) (last uint64, err error) {
	err = d.write(ctx, func() error { last, err = d.Memory.Append(ctx, epoch, recs); return err })
	return last, err
}

func (d *dying) Project(ctx context.Context, epoch, upTo uint64, rows []store.JobRow, docs map[string][]byte) error {
	return d.write(ctx, func() error { return d.Memory.Project(ctx, epoch, upTo, rows, docs) })
}

func (d *dying) write(ctx context.Context, f func() error) error {
	d.mu.Lock()
	d.left--
	die := d.left == 0
	d.mu.Unlock()
	select {
	case <-d.dead:
		<-ctx.Done()
		return ctx.Err()
	default:
	}
	if !die {
		return f()
	}
	if !d.before {
		if err := f(); err != nil {
			return err
		}
	}
	close(d.dead)
	<-ctx.Done()
	return ctx.Err()
}

// chaos is a world whose jobs and faults follow from a seed. It watches that no
// two attempts of a job and no two claims of a device live at once.
type chaos struct {
	t   *testing.T
	mu  sync.Mutex
	rnd *rand.Rand
	now time.Time

	world  *fake.World
	nodes  []fleet.Node
	driver *fake.Engine
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for i := range 3 {
		n := fleet.Node{Name: fmt.Sprintf("n%d", i+1), State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8)}}
		for d := range 4 {
			n.Devices = append(n.Devices, fleet.Device{Index: d, Kind: "gpu", Type: "h100", NUMA: -1})
		}
		c.nodes = append(c.nodes, n)
	}
	c.world = fake.NewWorld(fake.Config{Now: c.time, Nodes: c.nodes, Script: c.script, Fault: c.fault})
	c.driver = c.world.Open()
	return c
}

func (c *chaos) time() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *chaos) n(n int) int { c.mu.Lock(); defer c.mu.Unlock(); return c.rnd.IntN(n) }

func (c *chaos) script(*engine.Launch) fake.Outcome {
	o := fake.Outcome{Ready: time.Duration(c.n(3)) * time.Second, Run: time.Duration(c.n(20)) * time.Second}
	switch c.n(8) {
	case 0:
		o.FailNode = "n1"
	case 1:
		o.LoseNode, o.After = "n1", time.Second
	case 2:
		o.Resists = true
	case 3:
		o.Exit.Code.Status = 3
	}
	return o
}

func (c *chaos) fault(call fake.Call) (before, after error) {
	switch call.Name {
	case "launch", "stop", "forget", "inspect", "list":
		switch c.n(12) {
		case 0:
			return fault.New(fault.Unavailable, "%s: the call was lost", call.Name), nil
		case 1:
			return nil, fault.New(fault.Unavailable, "%s: the answer was lost", call.Name)
		}
	}
	return nil, nil
}

// pass lets time go on and what is due happen.
func (c *chaos) pass(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.mu.Unlock()
	c.world.Advance()
}

// check verifies that the attempts that live in the world do not collide.
func (c *chaos) check(live map[engine.Ref]*engine.Launch) {
	reports, err := c.driver.List(context.Background())
	if err != nil {
		return // a scripted fault
	}
	byJob, byDevice := map[job.ID]engine.Ref{}, map[string]engine.Ref{}
	for _, r := range reports {
		l := live[r.Ref]
		if r.Phase == engine.Ended || l == nil {
			continue
		}
		if other, ok := byJob[r.Job]; ok {
			c.t.Errorf("job %d lives twice, as %s and %s", r.Job, r.Ref, other)
		}
		byJob[r.Job] = r.Ref
		for _, cl := range l.Claims {
			for _, d := range cl.Devices {
				key := fmt.Sprint(cl.Node, ":", d.Index)
				if other, ok := byDevice[key]; ok {
					c.t.Errorf("device %s is used by %s and %s", key, r.Ref, other)
				}
				byDevice[key] = r.Ref
			}
		}
	}
}

// noted is a driver that keeps what was launched, over the restarts of control.
type noted struct {
	engine.Engine
	mu   *sync.Mutex
	live map[engine.Ref]*engine.Launch
}

func (n noted) Launch(ctx context.Context, l *engine.Launch) error {
	n.mu.Lock()
	n.live[l.Ref] = l
	n.mu.Unlock()
	return n.Engine.Launch(ctx, l)
}

// TestCrashesAtEveryWrite runs jobs, cancels and requeues through a control plane
// that dies again and again, and expects every job to have ended once, with
// nothing held and nothing left in the engine.
func TestCrashesAtEveryWrite(t *testing.T) {
	seeds := uint64(50)
	if os.Getenv("COX_LONG") != "" {
		seeds = 500
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { t.Parallel(); crashes(t, seed) })
	}
}

func crashes(t *testing.T, seed uint64) {
	c := newChaos(t, seed)
	mem, n := new(store.Memory), noted{c.driver, new(sync.Mutex), map[engine.Ref]*engine.Launch{}}
	accepted := map[job.ID]bool{}
	for life := range 6 {
		st := &dying{Memory: mem, left: 1 + c.n(14), before: c.n(2) == 0, dead: make(chan struct{})}
		if life == 5 {
			st.left = 0 // it lives on
		}
		ctl, err := control.Open(t.Context(), control.Config{
			Store: st, Pools: onHand(n), Grace: 2 * time.Second,
			Backoff: time.Millisecond, Project: time.Duration(1+c.n(5)) * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		c.act(ctl, st.dead, accepted)
		if life == 5 {
			c.settle(ctl, n, accepted)
		}
		if err := ctl.Close(); err != nil {
			t.Error(err)
		}
		c.same(mem)
		n.mu.Lock()
		c.check(n.live)
		n.mu.Unlock()
	}
	if err := c.driver.Close(); err != nil {
		t.Error(err)
	}
}

// nextAllocation is the number that the next allocation gets.
var nextAllocation = regexp.MustCompile(`\{"next":[0-9]+,"allocation":([0-9]+)`)

// same expects the same state from the projection and the journal after it as from
// the journal alone. The next allocation may have a larger number by the projection: that
// of one which was not written any more is left out.
func (c *chaos) same(st store.Store) {
	short, err := control.Restored(c.t.Context(), st, false)
	if err != nil {
		c.t.Fatal(err)
	}
	whole, err := control.Restored(c.t.Context(), st, true)
	if err != nil {
		c.t.Fatal(err)
	}
	is, may := nextAllocation.FindStringSubmatchIndex(whole), nextAllocation.FindStringSubmatchIndex(short)
	if is == nil || may == nil {
		c.t.Fatalf("no number of the next allocation in\n%s\n%s", whole, short)
	}
	least, more := whole[is[2]:is[3]], short[may[2]:may[3]]
	if x, y := number(c.t, least), number(c.t, more); y < x {
		c.t.Fatalf("the next allocation is number %d by the journal, %d by the projection", x, y)
	}
	short = short[:may[2]] + least + short[may[3]:]
	a, b := strings.Split(whole, "\n"), strings.Split(short, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			c.t.Fatalf("the projection differs from the journal in line %d of %d, %d:\n%s\n%s", i, len(a), len(b), a[min(i, len(a)-1)], b[min(i, len(b)-1)])
		}
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// change draws a change of a job.
func (c *chaos) change() control.Op {
	number, limit, comment, few := int64(c.n(3)), time.Duration(1+c.n(3))*time.Hour, fmt.Sprint("note ", c.n(9)), uint32(c.n(3))
	return []control.Op{
		control.Cancel{Grace: time.Duration(c.n(2)) * time.Second},
		control.Cancel{Message: "because"},
		control.Requeue{},
		control.Requeue{Hold: true},
		control.Hold{On: true, Admin: c.n(2) == 0},
		control.Hold{Admin: true},
		control.Top{},
		control.Update{Nice: &number},
		control.Update{TimeLimit: &limit},
		control.Update{Comment: &comment},
		control.Update{MaxRunning: &few},
		control.Update{Depends: &job.Dependency{Clauses: []job.DependencyClause{{Kind: job.AfterAny, Jobs: []job.JobRef{{Job: job.ID(1 + c.n(8))}}}}}},
	}[c.n(12)]
}

// policy draws rules of the site.
func (c *chaos) policy() control.PolicyChange {
	tier := int32(c.n(3))
	ch := control.PolicyChange{
		Text:  fmt.Sprintf("partitions:\n  - name: p\n    tier: %d\n", tier),
		Rules: &account.Policy{Partitions: []account.Partition{{Name: "p", Tier: tier}}},
	}
	if base := uint64(c.n(4)); base > 0 {
		ch.Base = &base
	}
	return ch
}

// spec draws a job.
func (c *chaos) spec() *job.Spec {
	s := gang(1+c.n(3), 1+c.n(4))
	s.Requeue = c.n(2) == 0
	if c.n(4) == 0 {
		s.Array = &job.ArraySpec{Text: "0-2%1", Indices: []uint32{0, 1, 2}, MaxRunning: 1, Step: 1}
	}
	if c.n(4) == 0 {
		kind := []job.DependencyKind{job.AfterOK, job.AfterAny, job.AfterNotOK, job.After}[c.n(4)]
		s.Depends = job.Dependency{Clauses: []job.DependencyClause{{Kind: kind, Jobs: []job.JobRef{{Job: job.ID(1 + c.n(8))}}}}}
	}
	return s
}

// act sends requests until the process dies or there are no more.
func (c *chaos) act(ctl *control.Control, dead <-chan struct{}, accepted map[job.ID]bool) {
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	go func() {
		select {
		case <-dead:
			cancel()
		case <-ctx.Done():
		}
	}()
	for range 10 {
		var err error
		id := job.ID(1 + c.n(8))
		switch c.n(9) {
		case 0, 1:
			var a control.Accepted
			if a, err = ctl.Submit(ctx, control.Submission{Spec: c.spec(), By: job.Actor{Name: "me"}}); err == nil {
				if accepted[a.ID] {
					c.t.Errorf("number %d was given twice", a.ID)
				}
				accepted[a.ID] = true
			}
		case 2, 3, 4:
			_, err = ctl.Change(ctx, job.Actor{Name: "me"}, []job.ID{id, id + 1, id}, c.change())
		case 5:
			err = ctl.SetNodes(ctx, job.Actor{Name: "root"}, []string{fmt.Sprint("n", 1+c.n(3))}, c.n(2) == 0, "why not")
		case 6:
			err = errors.Join(ctl.Check(ctx), ctl.PutToken(ctx, job.Actor{Name: "root"}, state.Token{ID: fmt.Sprint("t", c.n(3)), Hash: "h"}))
		case 7:
			_, err = ctl.SetPolicy(ctx, job.Actor{Name: "root"}, c.policy())
		default:
			c.pass(time.Duration(c.n(5)) * time.Second)
		}
		switch k := fault.KindOf(err); {
		case err == nil, k == fault.NotFound, k == fault.Conflict, k == fault.Invalid, k == fault.Unavailable && ctx.Err() != nil:
		default:
			c.t.Errorf("a request: %v", err)
		}
	}
}

// help lets a job go on that waits for somebody.
func (c *chaos) help(ctl *control.Control, v *state.View) {
	var op control.Op
	switch {
	case v.Job.Flags&job.Held != 0:
		op = control.Hold{Admin: true}
	case v.Why.Code == reason.DependNever, v.Why.Code == reason.Dependency && strings.HasSuffix(v.Why.Want, ":"+v.Job.ID.String()),
		v.Why.Code == reason.Wish: // every node was lost under it: it keeps off them for minutes of the wall's clock
		op = control.Cancel{}
	default:
		return
	}
	if err := ask(c.t.Context(), ctl, v.Job.ID, op); err != nil && fault.KindOf(err) != fault.Conflict {
		c.t.Fatal(err) // a conflict: it has ended meanwhile
	}
}

// settle waits until every job has ended and the engine has nothing left.
func (c *chaos) settle(ctl *control.Control, n noted, accepted map[job.ID]bool) {
	deadline := time.Now().Add(2 * time.Minute)
	if err := ctl.SetNodes(c.t.Context(), job.Actor{}, []string{"n1", "n2", "n3"}, false, ""); err != nil {
		c.t.Fatal(err)
	}
	for {
		c.pass(time.Second)
		n.mu.Lock()
		c.check(n.live)
		n.mu.Unlock()
		views, _, err := ctl.Jobs(c.t.Context())
		if err = errors.Join(err, ctl.Check(c.t.Context())); err != nil {
			c.t.Fatal(err)
		}
		open := 0
		seen := map[job.ID]bool{}
		for _, v := range views {
			seen[v.Job.ID] = true
			if !v.Job.State.Final() {
				open++
				c.help(ctl, &v)
			} else if v.Ref != (engine.Ref{}) {
				c.t.Errorf("job %d is %s and holds %s", v.Job.ID, v.Job.State, v.Ref)
			}
		}
		for id := range accepted {
			if seen[id] {
				continue
			}
			if v, err := ctl.Job(c.t.Context(), id); err != nil || !v.Job.State.Final() { // the projection has it
				c.t.Fatalf("job %d was accepted and is lost: %v, %s", id, err, v.Job.State)
			}
		}
		reports, err := c.driver.List(c.t.Context())
		if err == nil && open == 0 && len(reports) == 0 {
			return
		}
		if time.Now().After(deadline) {
			for _, v := range views {
				c.t.Logf("job %d %s flags %b attempt %d ref %s phase %s cause %s depends %s why %s", v.Job.ID, v.Job.State, v.Job.Flags, v.Job.Attempt, v.Ref, v.Report.Phase, v.Report.Cause, v.Job.Spec.Depends, v.Why)
			}
			c.t.Fatalf("%d jobs have not ended, the engine has %d attempts: %v", open, len(reports), reports)
		}
		time.Sleep(time.Millisecond) // time passes in the world; control has no event for "nothing to do"
	}
}
