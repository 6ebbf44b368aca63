package control_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// moody is a hand that answers or does not, and says which release it is.
type moody struct {
	*hand
	cross   atomic.Bool // it refuses to say anything
	release atomic.Int32
	checks  func() ([]engine.Finding, error) // what Check says
}

var errCross = errors.New("slurmctld is down")

func (m *moody) Info(ctx context.Context) (engine.Info, error) {
	i, err := m.hand.Info(ctx)
	i.Version = "24." + string('0'+m.release.Load())
	if m.cross.Load() {
		return engine.Info{}, errCross
	}
	return i, err
}

func (m *moody) Nodes(ctx context.Context) ([]fleet.Node, error) {
	if m.cross.Load() {
		return nil, errCross
	}
	return m.hand.Nodes(ctx)
}

func (m *moody) Check(context.Context) ([]engine.Finding, error) {
	if m.checks == nil {
		return nil, nil
	}
	return m.checks()
}

// viewed waits until a pool is as it should be, while time passes.
func (b *bench) viewed(c *clock, pool string, ok func(pools.View) bool) pools.View {
	b.t.Helper()
	var v pools.View
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) { // there is no event for it
		for _, v = range b.ctl.Pools() {
			if v.Name == pool && ok(v) {
				return v
			}
		}
		b.pass(c, 10*time.Second)
	}
	b.t.Fatalf("pool %s never is as it should be: %+v", pool, v)
	return v
}

// TestAPoolKeepsWhatItsEngineSaidOfItself: asked at the opening and at each comparison;
// who does not answer any more is known by what he said last.
func TestAPoolKeepsWhatItsEngineSaidOfItself(t *testing.T) {
	c := newClock()
	q := &moody{hand: named("b", 2, 8)}
	b := two(t, named("a", 1, 8), q, control.Config{Clock: c})
	v := b.viewed(c, "q", func(v pools.View) bool { return v.Info != nil })
	if v.Info.Version != "24.0" || v.Failed != nil || v.Heard.IsZero() || v.Default || v.Nodes != 2 || v.Devices != 16 {
		t.Errorf("after the opening it is %+v", v)
	}
	q.release.Store(1)
	b.viewed(c, "q", func(v pools.View) bool { return v.Info.Version == "24.1" })
	q.cross.Store(true)
	v = b.viewed(c, "q", func(v pools.View) bool { return v.Failed != nil })
	if v.Info == nil || v.Info.Version != "24.1" || v.Nodes != 2 || !errors.Is(v.Failed, errCross) {
		t.Errorf("one that does not answer is %+v", v)
	}
	q.cross.Store(false)
	b.viewed(c, "q", func(v pools.View) bool { return v.Failed == nil && v.Asked.IsZero() })
}

// TestAPoolThatHangsIsSeen: what it was asked, and since when, is known.
func TestAPoolThatHangsIsSeen(t *testing.T) {
	c := newClock()
	q := newMute(named("b", 1, 8))
	b := two(t, named("a", 1, 8), q, control.Config{Clock: c})
	v := b.viewed(c, "q", func(v pools.View) bool { return v.Info != nil && v.Asked.IsZero() })
	q.hush()
	w := b.viewed(c, "q", func(v pools.View) bool { return !v.Asked.IsZero() && c.Now().Sub(v.Asked) > time.Minute })
	if w.Heard.Before(v.Heard) || w.Asked.Before(v.Heard) || w.Failed != nil {
		t.Errorf("heard at %s, asked at %s: %v", w.Heard, w.Asked, w.Failed)
	}
}

// grumpy is a hand that says that it is down, and hangs when it is asked for its nodes.
type grumpy struct {
	*mute
	down atomic.Bool
}

func (g *grumpy) Info(ctx context.Context) (engine.Info, error) {
	if g.down.Load() {
		return engine.Info{}, errCross
	}
	return g.mute.Info(ctx)
}

// TestAPoolThatIsDownIsSeenAtOnce: though it hangs at what it is asked next.
// Seen to fail without fail in askAll: it was as before.
func TestAPoolThatIsDownIsSeenAtOnce(t *testing.T) {
	c := newClock()
	q := &grumpy{mute: newMute(named("b", 1, 8))}
	b := two(t, named("a", 1, 8), q, control.Config{Clock: c})
	b.viewed(c, "q", func(v pools.View) bool { return v.Info != nil && v.Asked.IsZero() })
	q.hush()
	q.down.Store(true)
	v := b.viewed(c, "q", func(v pools.View) bool { return !v.Asked.IsZero() && v.Failed != nil })
	if !errors.Is(v.Failed, errCross) || v.Info == nil {
		t.Errorf("%+v", v)
	}
}

// TestALookAtAPool finds what is wrong with it, and leaves nothing.
func TestALookAtAPool(t *testing.T) {
	s := &sites{hands: map[string]*hand{}, closed: map[string]int{}}
	var now *moody
	trials := 0
	b := openWith(t, named("a", 1, 8), control.Config{OpenPool: func(ctx context.Context, spec state.PoolSpec) (pools.Pool, error) {
		p, err := s.open(ctx, spec)
		if err == nil {
			p.Engine = struct {
				site
				engine.Checker
			}{p.Engine.(site), now}
		}
		if spec.Trial {
			trials++
		}
		return p, err
	}})
	now = &moody{checks: func() ([]engine.Finding, error) {
		return []engine.Finding{{What: "rights", State: engine.Missing, Text: "no operator", Mend: "sacctmgr …"}}, errors.New("cut off")
	}}
	spec := state.PoolSpec{Name: "q", Engine: "hand"}
	found, err := b.ctl.CheckPool(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]engine.Finding{}
	for _, f := range found.Findings {
		said[f.What] = f
	}
	if said["engine"].Text != "hand, gangs strict" || said["nodes"].Text != "1 with 8 devices: q1" || said["rights"].Mend != "sacctmgr …" || said["check"].Text != "cut off" {
		t.Errorf("found: %+v", found.Findings)
	}
	if m := found.Missing(); len(m) != 2 || trials != 1 || s.closed["q"] != 1 {
		t.Errorf("missing: %+v; opened %d times for a look, closed %d times", m, trials, s.closed["q"])
	}
	if ps := b.ctl.Pools(); len(ps) != 1 {
		t.Errorf("after a look the pools are %+v", ps)
	}
	s.hands["q"].nodes[0].Name = "a1"
	found, err = b.ctl.CheckPool(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found.Findings {
		said[f.What] = f
	}
	if f := said["machines"]; f.State != engine.Warning || !strings.Contains(f.Text, "a1: on a1 of pool p; nothing starts there until") {
		t.Errorf("found: %+v", found.Findings)
	}
	for _, tt := range []struct {
		spec state.PoolSpec
		kind fault.Kind
	}{{state.PoolSpec{Name: "p", Engine: "hand"}, fault.Conflict}, {state.PoolSpec{Name: "-", Engine: "hand"}, fault.Invalid}, {state.PoolSpec{Name: "q", Engine: "sge"}, fault.Unsupported}} {
		if _, err := b.ctl.CheckPool(t.Context(), tt.spec); fault.KindOf(err) != tt.kind {
			t.Errorf("a look at %+v: %v", tt.spec, err)
		}
	}
	if found, err := b.ctl.RecheckPool(t.Context(), "p"); err != nil || len(found.Missing()) != 0 {
		t.Errorf("a look at what is there: %+v, %v", found, err)
	}
	if _, err := b.ctl.RecheckPool(t.Context(), "q"); fault.KindOf(err) != fault.NotFound || fault.Remedy(err) != "pools here: p" {
		t.Errorf("a look at what is not there: %v", err)
	}
}

// TestAPoolThatIsRemovedWhileItIsAsked leaves no nodes: what it answers then is about
// nothing. Seen to fail without a look for the pool in askAll: its node stayed.
func TestAPoolThatIsRemovedWhileItIsAsked(t *testing.T) {
	asked, release := make(chan struct{}, 8), make(chan struct{})
	h := named("q", 1, 8)
	b := openWith(t, named("a", 1, 8), control.Config{OpenPool: func(_ context.Context, spec state.PoolSpec) (pools.Pool, error) {
		return pools.Pool{Pool: fleet.Pool{Name: spec.Name}, Engine: &tardy{h, asked, release}}, nil
	}})
	by := job.Actor{Name: "root"}
	if err := b.ctl.AddPool(t.Context(), by, state.PoolSpec{Name: "q", Engine: "hand"}); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := b.ctl.RemovePool(t.Context(), by, "q", false); err != nil {
		t.Fatal(err)
	}
	close(release)
	<-asked // List: what Nodes said is on its way to the loop, before what comes now
	if err := b.ctl.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if nodes, err := b.ctl.Nodes(t.Context()); err != nil || len(nodes) != 1 {
		t.Errorf("the nodes are %v, %v", nodes, err)
	}
}

// tardy is a hand that says when it is asked for its nodes, and answers when it may.
type tardy struct {
	*hand
	asked chan<- struct{}
	may   <-chan struct{}
}

func (s *tardy) Nodes(ctx context.Context) ([]fleet.Node, error) {
	s.asked <- struct{}{}
	select {
	case <-s.may:
	case <-ctx.Done():
	}
	return s.hand.Nodes(ctx)
}

func (s *tardy) List(context.Context) ([]engine.Report, error) {
	s.asked <- struct{}{}
	return nil, nil
}

// gated is a store whose journal hangs for as long as a test says.
type gated struct {
	*store.Memory
	shut  atomic.Bool
	stuck chan struct{} // it hangs
	open  chan struct{} // closed: it goes on
}

func (g *gated) Append(ctx context.Context, epoch uint64, recs []store.Record) (uint64, error) {
	if len(recs) > 0 && g.shut.Load() {
		select {
		case g.stuck <- struct{}{}:
		default:
		}
		select {
		case <-g.open:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return g.Memory.Append(ctx, epoch, recs)
}

// TestAJobThatComesWithTheNodesOfItsPool is taken: nodes of which the core has not heard yet
// are no reason to refuse it. Seen to fail without the look at reached in loop.never.
func TestAJobThatComesWithTheNodesOfItsPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, release := make(chan struct{}, 8), make(chan struct{})
		st := &gated{Memory: new(store.Memory), stuck: make(chan struct{}, 1), open: make(chan struct{})}
		q := &tardy{named("q", 1, 8), asked, release}
		b := &bench{t: t, store: st.Memory}
		b.cfg = control.Config{
			Store: st, Pools: onHand(named("a", 1, 8)), Who: t.Name(),
			OpenPool: func(_ context.Context, spec state.PoolSpec) (pools.Pool, error) {
				return pools.Pool{Pool: fleet.Pool{Name: spec.Name}, Engine: q}, nil
			},
		}
		b.open()
		t.Cleanup(b.close)
		if err := b.ctl.AddPool(t.Context(), job.Actor{Name: "root"}, state.PoolSpec{Name: "q", Engine: "hand"}); err != nil {
			t.Fatal(err)
		}
		<-asked
		st.shut.Store(true)
		answers := make(chan error, 2)
		submit := func(s *job.Spec) {
			_, err := b.ctl.Submit(t.Context(), control.Submission{Spec: s})
			answers <- err
		}
		go submit(gang(1, 8))
		<-st.stuck // the loop waits for the disk
		close(release)
		<-asked // the nodes are in its inbox, and now the job
		go submit(in("q", gang(1, 8)))
		synctest.Wait() // it waits there
		close(st.open)
		for range 2 {
			if err := <-answers; err != nil {
				t.Errorf("a job is refused: %v", err)
			}
		}
	})
}
