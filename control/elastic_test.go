package control_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/store"
)

// elasticHand is an engine that can change a gang.
type elasticHand struct{ *hand }

func (elasticHand) Regroup(context.Context, engine.Ref, engine.Roster) error { return nil }

// stretch is an elastic job that runs, with all that it could be given.
type stretch struct {
	*bench
	id  job.ID
	own state.View // as it started
}

// refs are what was added to the job and lives, in the order of allocations.
func (s *stretch) refs() (out []engine.Ref) {
	s.hand.mu.Lock()
	defer s.hand.mu.Unlock()
	for ref, r := range s.hand.reports {
		if r.Job == s.id && ref != s.own.Ref && r.Phase != engine.Ended {
			out = append(out, ref)
		}
	}
	slices.SortFunc(out, func(a, b engine.Ref) int { return int(a.Allocation) - int(b.Allocation) })
	return out
}

// has waits until the job holds so many nodes and the engine has all of it.
func (s *stretch) has(nodes int) {
	s.t.Helper()
	s.until(s.id, "of its size", func(v state.View) bool { return len(v.Claims) == nodes })
	s.given(nodes - 1)
}

// given waits until so many additions live at the engine.
func (s *stretch) given(n int) []engine.Ref {
	s.t.Helper()
	for {
		s.hand.mu.Lock()
		wake := s.hand.wake
		s.hand.mu.Unlock()
		if refs := s.refs(); len(refs) == n {
			return refs
		}
		select {
		case <-wake:
		case <-time.After(2 * time.Minute):
			s.t.Fatalf("it was given %v, want %d", s.refs(), n)
		}
	}
}

// begin submits a job of one node and more, and lets it start.
func begin(t *testing.T, cfg control.Config, nodes, most int, policy *account.Policy, spec func(*job.Spec)) *stretch {
	h := newHand(nodes, 8)
	b := &bench{t: t, hand: h}
	b.store, b.cfg = new(store.Memory), cfg
	b.cfg.Store, b.cfg.Pools, b.cfg.Who = b.store, onHand(elasticHand{h}), t.Name()
	b.cfg.Pools[0].Elastic = true
	b.open()
	t.Cleanup(b.close)
	if policy != nil {
		if _, err := b.ctl.SetPolicy(t.Context(), job.Actor{Name: "root"}, control.PolicyChange{Text: "rules", Rules: policy}); err != nil {
			t.Fatal(err)
		}
	}
	x := gang(1, 8)
	g := &x.Groups[0]
	g.Tasks, g.Nodes, g.Elastic = job.Count{}, job.Range{Min: 1, Max: most}, true
	x.Requeue = true
	if spec != nil {
		spec(x)
	}
	s := &stretch{bench: b, id: b.submit(x)}
	s.own = b.launched(s.id)
	h.start(s.own)
	s.has(min(nodes, most))
	for _, ref := range s.refs() {
		s.runs(ref)
	}
	return s
}

func (s *stretch) runs(ref engine.Ref) {
	s.hand.report(engine.Report{Ref: ref, Phase: engine.Running, Started: time.Now()})
}

func (s *stretch) gone(ref engine.Ref, why engine.Cause) {
	s.hand.report(engine.Report{Ref: ref, Phase: engine.Ended, Gone: true, Cause: why, Started: time.Now(), Ended: time.Now()})
}

// askedBack waits until the engine was told to stop one of some attempts.
func (s *stretch) askedBack(of []engine.Ref) engine.Ref {
	s.t.Helper()
	for {
		s.hand.mu.Lock()
		wake := s.hand.wake
		for _, ref := range of {
			if len(s.hand.stops[ref]) > 0 {
				s.hand.mu.Unlock()
				return ref
			}
		}
		s.hand.mu.Unlock()
		select {
		case <-wake:
		case <-time.After(2 * time.Minute):
			s.t.Fatal("nothing is asked back")
		}
	}
}

// TestWhatWasAddedIsGivenBack: whoever comes takes one node of three back, and starts
// when it is proved gone. The job has it again when that one has ended; with a restart
// before each step.
func TestWhatWasAddedIsGivenBack(t *testing.T) {
	s := begin(t, control.Config{}, 3, 3, nil, nil)
	s.reopen()
	other := s.submit(gang(1, 8))
	asked := s.askedBack(s.refs())
	s.reopen()
	if v, err := s.ctl.Job(t.Context(), other); err != nil || v.Job.State != job.Pending {
		t.Errorf("job %d is %s before it was given a node (%v)", other, v.Job.State, err)
	}
	s.gone(asked, engine.Stopped)
	o := s.launched(other)
	s.has(2)
	s.hand.start(o)
	s.reopen()
	s.hand.end(o, engine.Exited, 0)
	s.has(3)
	s.hand.end(s.own, engine.Exited, 0)
	for _, ref := range s.refs() {
		s.hand.stopped(t, ref)
		s.gone(ref, engine.Stopped)
	}
	s.state(s.id, job.Completed)
}

// TestLossOfANodeOfAnElasticJob: without a node that was added the job goes on, and is given
// another one; without one of its minimum it ends, and runs again when all of it is
// gone.
func TestLossOfANodeOfAnElasticJob(t *testing.T) {
	s := begin(t, control.Config{}, 3, 2, nil, nil)
	lost := s.refs()[0]
	s.gone(lost, engine.NodeLost)
	other := s.given(1)[0] // lost is none of them
	s.runs(other)
	s.hand.end(s.own, engine.NodeLost, 1)
	s.hand.stopped(t, other)
	if v, err := s.ctl.Job(t.Context(), s.id); err != nil || v.Job.Attempt != 1 || !v.Job.State.Holds() {
		t.Errorf("it is at attempt %d, %s, while something of it lives (%v)", v.Job.Attempt, v.Job.State, err)
	}
	s.gone(other, engine.Stopped)
	s.until(s.id, "at attempt 2", func(v state.View) bool { return v.Job.Attempt == 2 && v.Report.Phase == engine.Accepted })
}

// TestAPreemptorTakesTheMinimumToo: all of the job is stopped, and whoever takes its place
// starts when the last of it is gone.
//
// This and the last one were seen to fail with the job's own end not waiting for what was
// added to it.
func TestAPreemptorTakesTheMinimumToo(t *testing.T) {
	rules := &account.Policy{
		QOS:        []account.QOS{{Name: "high", Preempts: []string{"low"}}, {Name: "low"}},
		Preemption: account.Preemption{By: []string{"qos"}, Mode: account.PreemptCancel},
	}
	s := begin(t, control.Config{}, 2, 2, rules, func(x *job.Spec) { x.QOS = "low" })
	added := s.refs()[0]
	taker := gang(2, 8)
	taker.QOS = "high"
	id := s.submit(taker)
	s.hand.stopped(t, s.own.Ref)
	s.hand.stopped(t, added)
	s.hand.end(s.own, engine.Stopped, 15)
	s.until(s.id, "ended but for what was added", func(v state.View) bool { return v.Report.Phase == engine.Ended })
	if v, err := s.ctl.Job(t.Context(), id); err != nil || v.Job.State != job.Pending {
		t.Errorf("job %d is %s while something of the other lives (%v)", id, v.Job.State, err)
	}
	s.gone(added, engine.Stopped)
	s.launched(id)
	s.state(s.id, job.Preempted)
}

// TestAnArrayIsAdmittedInPart: of five tasks as many run as the account may have, and each
// of the others says what it waits for. One that ends lets the next one in.
func TestAnArrayIsAdmittedInPart(t *testing.T) {
	b := open(t, newHand(1, 8))
	two := int64(2)
	rules := &account.Policy{Accounts: []account.Account{{Name: "a", Limits: account.Limits{GroupJobs: &two}}}}
	if _, err := b.ctl.SetPolicy(t.Context(), job.Actor{Name: "root"}, control.PolicyChange{Text: "rules", Rules: rules}); err != nil {
		t.Fatal(err)
	}
	s := array(gang(1, 1), 5)
	s.Account = "a"
	first := b.submit(s)
	one := b.launched(first)
	b.launched(first + 1)
	for i := 2; i < 5; i++ {
		b.until(first+job.ID(i), "stopped by the limit", func(v state.View) bool {
			return v.Job.State == job.Pending && (v.Why.Code.Limit() != "" || v.Why.Code == reason.Priority)
		})
	}
	b.hand.start(one)
	b.hand.end(one, engine.Exited, 0)
	b.launched(first + 2)
	b.until(first+3, "stopped by the limit", func(v state.View) bool { return v.Job.State == job.Pending && v.Why.Code.Limit() != "" })
}

// TestWhereARankIs: what was added is known to the engine by a name of its own, in which
// ranks count from 0.
func TestWhereARankIs(t *testing.T) {
	s := begin(t, control.Config{}, 3, 3, nil, nil)
	v, err := s.ctl.Job(t.Context(), s.id)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		node  string
		rank  int // -1: none
		ref   engine.Ref
		local int
	}{
		{"", -1, s.own.Ref, -1},
		{"", 0, s.own.Ref, 0},
		{"", 2, v.Added[1].Ref, 0},
		{"", 3, s.own.Ref, 3}, // nobody has it
		{v.Added[0].Claims[0].Node, -1, v.Added[0].Ref, -1},
		{s.own.Claims[0].Node, -1, s.own.Ref, -1},
	} {
		var rank *int
		if c.rank >= 0 {
			rank = &c.rank
		}
		ref, local := v.Where(c.node, rank)
		if ref != c.ref || (local != nil) != (c.local >= 0) || local != nil && *local != c.local {
			t.Errorf("node %q, rank %d: %s, want %s", c.node, c.rank, ref, c.ref)
		}
	}
}

// TestUsageOfWhatWasAddedOutlivesTheServer: what a job used by what was added to it and has
// gone again since the last tick is charged after a restart as before.
//
// Seen to fail with dropped records without what was used.
func TestUsageOfWhatWasAddedOutlivesTheServer(t *testing.T) {
	c := newClock()
	s := begin(t, control.Config{Clock: c}, 2, 2, shared().Rules, func(x *job.Spec) { charged("a", "u", x) })
	s.pass(c, 100*time.Second)
	s.gone(s.refs()[0], engine.Exited)
	s.until(s.id, "of one node", func(v state.View) bool { return len(v.Claims) == 1 })
	if err := s.ctl.Check(t.Context()); err != nil { // the loop has told the core
		t.Fatal(err)
	}
	want, _ := s.ctl.Shares(t.Context())
	if want[0].Raw < 90 {
		t.Fatalf("%v were used: %+v", want[0].Raw, want)
	}
	s.hand.end(s.own, engine.Exited, 0)
	s.state(s.id, job.Completed)
	want, _ = s.ctl.Shares(t.Context())
	for range 2 {
		s.reopen()
		if err := s.ctl.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, _ := s.ctl.Shares(t.Context())
		if got[0].Raw < want[0].Raw-2 || got[0].Raw > want[0].Raw+2 {
			t.Fatalf("%v were used before the restart, %v after it", want[0].Raw, got[0].Raw)
		}
	}
}

// TestAStuckRankThatWasAdded: the node on which a process of what was added cannot be ended
// is drained, and the job is shown as uncertain until it is; a restart in between changes
// nothing of it, and who resumes the node is believed.
//
// Seen to fail with reports of additions that are not looked at for that.
func TestAStuckRankThatWasAdded(t *testing.T) {
	s := begin(t, control.Config{}, 2, 2, nil, nil)
	ref := s.refs()[0]
	v, err := s.ctl.Job(t.Context(), s.id)
	if err != nil {
		t.Fatal(err)
	}
	node := v.Added[0].Claims[0].Node
	stuck := engine.Report{
		Ref: ref, Phase: engine.Ending, Uncertain: true, Message: "a process of it does not end", Started: time.Now(),
		Nodes: []engine.NodeReport{{Node: node, Stuck: "4711 (train)"}},
	}
	s.hand.report(stuck)
	s.until(s.id, "uncertain", func(v state.View) bool { return v.Job.Flags&job.Uncertain != 0 })
	drained := func() bool {
		t.Helper()
		nodes, err := s.ctl.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(nodes, func(n fleet.Node) bool { return n.Name == node && n.State == fleet.Draining })
	}
	if !drained() {
		t.Errorf("node %s is not drained", node)
	}
	s.reopen()
	s.until(s.id, "uncertain", func(v state.View) bool { return v.Job.Flags&job.Uncertain != 0 })
	if !drained() {
		t.Errorf("node %s is not drained after a restart", node)
	}
	stuck.Uncertain, stuck.Phase, stuck.Message, stuck.Nodes = false, engine.Running, "", nil
	s.hand.report(stuck)
	s.until(s.id, "certain again", func(v state.View) bool { return v.Job.Flags&job.Uncertain == 0 })
}

// TestAJobThatHasEndedMakesNoRoom: a job whose own tasks have failed, and that waits for
// what was added to it, is nobody's victim: it ends as it did.
//
// Seen to fail (it waits again) where neither the core is told that it goes nor a decision
// to take its place is passed over.
func TestAJobThatHasEndedMakesNoRoom(t *testing.T) {
	rules := &account.Policy{
		QOS:        []account.QOS{{Name: "high", Preempts: []string{"low"}}, {Name: "low"}},
		Preemption: account.Preemption{By: []string{"qos"}, Mode: account.PreemptRequeue},
	}
	s := begin(t, control.Config{}, 2, 2, rules, func(x *job.Spec) { x.QOS = "low" })
	added := s.refs()[0]
	s.hand.end(s.own, engine.Exited, 1)
	s.hand.stopped(t, added)
	over := func(v state.View) bool { return v.Report.Phase == engine.Ended }
	s.until(s.id, "ended but for what was added", over)
	s.reopen()
	s.until(s.id, "ended but for what was added, as the engine says again", over)
	taker := gang(2, 8)
	taker.QOS = "high"
	id := s.submit(taker)
	s.until(id, "waiting", func(v state.View) bool { return v.Why.Code != reason.None })
	s.gone(added, engine.Stopped)
	s.state(s.id, job.Failed)
	s.launched(id)
}

// TestAJobIsAskedTooLateToMakeRoom: it had failed before, which a server that was restarted
// hears only after it has asked. It ends as it did. Seen to fail (it waits again) where the
// time of its end is not looked at.
func TestAJobIsAskedTooLateToMakeRoom(t *testing.T) {
	rules := &account.Policy{
		QOS:        []account.QOS{{Name: "high", Preempts: []string{"low"}}, {Name: "low"}},
		Preemption: account.Preemption{By: []string{"qos"}, Mode: account.PreemptRequeue},
	}
	s := begin(t, control.Config{}, 2, 2, rules, func(x *job.Spec) { x.QOS = "low" })
	added, before := s.refs()[0], time.Now()
	taker := gang(2, 8)
	taker.QOS = "high"
	s.submit(taker)
	s.hand.stopped(t, s.own.Ref)
	s.hand.report(engine.Report{Ref: s.own.Ref, Phase: engine.Ended, Gone: true, Cause: engine.Exited, Exit: job.ExitCode{Status: 1}, Started: before, Ended: before.Add(-time.Second)})
	s.gone(added, engine.Stopped)
	s.state(s.id, job.Failed)
}

// TestWhatWasAddedIsEndedOnceTheJournalIsWritten: a job ends while the disk is full. What was
// added to it is ended once there is room again: nobody else would think of that.
//
// Seen to fail with: what waits to be sure that this server leads dropped with a failed write.
func TestWhatWasAddedIsEndedOnceTheJournalIsWritten(t *testing.T) {
	c := newClock()
	s := begin(t, control.Config{Clock: c}, 2, 2, nil, nil)
	added := s.refs()[0]
	s.until(s.id, "whole", func(state.View) bool { return slices.Contains(s.kinds(), "addition-started") })
	s.close()
	st := &shaky{Memory: s.store}
	s.cfg.Store = st
	s.open()
	st.mu.Lock()
	st.failed = make(chan struct{}, 1000)
	st.mu.Unlock()
	st.fail(errDisk, nil, nil)
	again := func() { // lets time go on until the next write has failed
		stop := c.goesOn()
		<-st.failed
		stop()
	}
	s.hand.end(s.own, engine.Exited, 1)
	for heard := false; !heard; { // that it has ended; nothing is published meanwhile
		again()
		v, err := s.ctl.Job(t.Context(), s.id)
		heard = err == nil && v.Report.Phase == engine.Ended
	}
	for range 2 {
		again()
	}
	st.fail(nil, nil, nil)
	stop := c.goesOn() // the next try may be as far away as the last was, or farther
	s.hand.stopped(t, added)
	stop()
	s.gone(added, engine.Stopped)
	s.state(s.id, job.Failed)
}
