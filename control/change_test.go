package control_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/store"
)

func TestAnAdminsHoldIsReleasedByAnAdmin(t *testing.T) {
	b := open(t, newHand(1, 8))
	s := gang(1, 8)
	s.Held = true
	id := b.submit(s)
	if err := ask(t.Context(), b.ctl, id, control.Hold{On: true, Admin: true}); err != nil {
		t.Fatal(err)
	}
	b.waits(id, reason.HeldAdmin)
	b.reopen()
	if err := ask(t.Context(), b.ctl, id, control.Hold{}); fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "" {
		t.Errorf("its owner releases it: %v", err)
	}
	b.waits(id, reason.HeldAdmin)
	if err := ask(t.Context(), b.ctl, id, control.Hold{Admin: true}); err != nil {
		t.Fatal(err)
	}
	b.launched(id)
}

func TestRequeueAndHold(t *testing.T) {
	b := open(t, newHand(1, 8))
	id := b.submit(gang(1, 8))
	v := b.launched(id)
	if err := ask(t.Context(), b.ctl, id, control.Requeue{Hold: true}); err != nil {
		t.Fatal(err)
	}
	b.hand.stopped(t, v.Ref)
	b.hand.end(v, engine.Stopped, 0)
	b.waits(id, reason.HeldUser)
	if err := ask(t.Context(), b.ctl, id, control.Hold{}); err != nil {
		t.Fatal(err)
	}
	b.finish(id, 0)
	if err := ask(t.Context(), b.ctl, id, control.Requeue{Hold: true}); err != nil {
		t.Fatal(err)
	}
	b.waits(id, reason.HeldUser)
}

// TestSpecialExit: a job that is requeued to SPECIAL_EXIT is held there until it is released,
// whether it ran or had ended, and over a restart.
func TestSpecialExit(t *testing.T) {
	b := open(t, newHand(1, 8))
	id := b.submit(gang(1, 8))
	v := b.launched(id)
	special := func() job.Flags {
		t.Helper()
		b.waits(id, reason.HeldUser)
		b.reopen()
		v := b.until(id, "held", func(v state.View) bool { return v.Job.State == job.Pending && v.Why.Code == reason.HeldUser })
		return v.Job.Flags & job.SpecialExit
	}
	if err := ask(t.Context(), b.ctl, id, control.Requeue{Hold: true, Special: true}); err != nil {
		t.Fatal(err)
	}
	b.hand.stopped(t, v.Ref)
	b.hand.end(v, engine.Stopped, 0)
	if special() == 0 {
		t.Error("it ran, and has not the flag")
	}
	if err := ask(t.Context(), b.ctl, id, control.Requeue{Hold: true, Special: true}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("one that waits: %v", err)
	}
	if err := ask(t.Context(), b.ctl, id, control.Hold{}); err != nil {
		t.Fatal(err)
	}
	b.finish(id, 0)
	if err := ask(t.Context(), b.ctl, id, control.Requeue{Hold: true}); err != nil {
		t.Fatal(err)
	}
	if special() != 0 {
		t.Error("it was released, and has the flag")
	}
	if err := ask(t.Context(), b.ctl, id, control.Hold{}); err != nil {
		t.Fatal(err)
	}
	b.finish(id, 0)
	if err := ask(t.Context(), b.ctl, id, control.Requeue{Hold: true, Special: true}); err != nil {
		t.Fatal(err)
	}
	if special() == 0 {
		t.Error("it had ended, and has not the flag")
	}
}

func TestOneChangeOfManyJobsIsAnsweredForEach(t *testing.T) {
	b := open(t, newHand(1, 8))
	first, second := b.submit(gang(1, 8)), b.submit(gang(1, 8))
	b.launched(first)
	errs, err := b.ctl.Change(t.Context(), job.Actor{Name: "me"}, []job.ID{first, 99, second, second}, control.Suspend{On: true})
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("an engine that cannot suspend: %v %v", errs, err)
	}
	name := "new"
	errs, err = b.ctl.Change(t.Context(), job.Actor{Name: "me"}, []job.ID{first, 99, second, second}, control.Update{Name: &name, QOS: &name})
	if err != nil || len(errs) != 4 {
		t.Fatal(errs, err)
	}
	if fault.KindOf(errs[0]) != fault.Conflict || fault.KindOf(errs[1]) != fault.NotFound || errs[2] != nil || errs[3] != nil {
		t.Errorf("%v", errs)
	}
	if v, _ := b.ctl.Job(t.Context(), second); v.Job.Spec.Name != "new" || v.Job.Spec.QOS != "new" {
		t.Errorf("the second is %+v", v.Job.Spec)
	}
	if v, _ := b.ctl.Job(t.Context(), first); v.Job.Spec.Name != "gang" {
		t.Errorf("the first is %+v", v.Job.Spec)
	}
}

func TestCancelOfAnArrayStartsNoTask(t *testing.T) {
	b := open(t, newHand(1, 8))
	s := gang(1, 8)
	s.Array = &job.ArraySpec{Text: "0-99", Step: 1}
	for i := range 100 {
		s.Array.Indices = append(s.Array.Indices, uint32(i))
	}
	id := b.submit(s)
	v := b.launched(id)
	if _, err := b.ctl.Change(t.Context(), job.Actor{Name: "me"}, b.ctl.Tasks(id), control.Cancel{Signal: 2, Grace: time.Second, Message: "enough"}); err != nil {
		t.Fatal(err)
	}
	if stops := b.hand.stopped(t, v.Ref); stops[0].Signal != 2 {
		t.Errorf("the engine was told %+v", stops)
	}
	b.hand.end(v, engine.Stopped, 0)
	if v := b.state(id, job.Cancelled); v.Message != "enough" {
		t.Errorf("it does not say why: %+v", v)
	}
	if len(b.hand.launches) != 1 {
		t.Errorf("%d attempts were launched", len(b.hand.launches))
	}
}

func TestUpdateOfAWaitingJob(t *testing.T) {
	b := open(t, newHand(2, 8))
	b.launched(b.submit(gang(2, 8)))
	id := b.submit(gang(1, 8))
	limit, nice, begin := 3*time.Hour, int64(-5), time.Now().Add(time.Hour)
	u := control.Update{TimeLimit: &limit, Nice: &nice, Begin: &begin, Nodes: &job.Range{Min: 1, Max: 1}, Exclude: &[]string{"n1"}}
	if err := ask(t.Context(), b.ctl, id, u); err != nil {
		t.Fatal(err)
	}
	b.waits(id, reason.BeginTime)
	b.reopen()
	v, err := b.ctl.Job(t.Context(), id)
	g := v.Job.Spec.Groups[0]
	if err != nil || v.Job.Spec.TimeLimit != limit || v.Priority != 5 || !v.Job.Spec.Begin.Equal(begin) || g.Nodes.Max != 1 || g.Exclude[0] != "n1" {
		t.Errorf("%+v %v", v.Job.Spec, err)
	}
	many := job.Range{Min: 9, Max: 9}
	var refused *control.RefusedError
	if err := ask(t.Context(), b.ctl, id, control.Update{Nodes: &many}); !errors.As(err, &refused) {
		t.Errorf("more nodes than there are: %v", err)
	}
	if err := ask(t.Context(), b.ctl, id, control.Update{}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an update of nothing: %v", err)
	}
}

func TestTheLimitOfAnArrayCanChange(t *testing.T) {
	b := open(t, newHand(1, 8))
	s := gang(1, 1)
	s.Array = &job.ArraySpec{Text: "0-5%1", Indices: []uint32{0, 1, 2, 3, 4, 5}, MaxRunning: 1, Step: 1}
	id := b.submit(s)
	b.launched(id)
	b.waits(id+1, reason.ArrayLimit)
	for _, n := range []uint32{3, 0} {
		if err := ask(t.Context(), b.ctl, id+5, control.Update{MaxRunning: &n}); err != nil {
			t.Fatal(err)
		}
		if n == 3 {
			b.launched(id + 2)
			b.waits(id+3, reason.ArrayLimit)
			b.reopen()
			b.waits(id+3, reason.ArrayLimit)
		}
	}
	b.launched(id + 5)
}

func TestTopPassesOnlyOnesOwn(t *testing.T) {
	b := open(t, newHand(1, 8))
	run := b.launched(b.submit(gang(1, 8)))
	var ids []job.ID
	for _, user := range []string{"a", "b", "a", "a"} {
		s := gang(1, 8)
		s.Owner = job.Owner{User: user}
		ids = append(ids, b.submit(s))
	}
	if err := ask(t.Context(), b.ctl, ids[3], control.Top{}); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	var order []job.ID
	b.hand.end(run, engine.Exited, 0)
	for range ids {
		var next state.View
		for _, id := range ids {
			if !slices.Contains(order, id) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				next = b.any(ctx, ids, order)
				cancel()
				break
			}
		}
		order = append(order, next.Job.ID)
		b.finish(next.Job.ID, 0)
	}
	if want := []job.ID{ids[3], ids[1], ids[0], ids[2]}; !slices.Equal(order, want) {
		t.Errorf("they ran as %v, want %v", order, want)
	}
}

// any waits until one of the jobs runs that are not in the list.
func (b *bench) any(ctx context.Context, ids, not []job.ID) state.View {
	b.t.Helper()
	views, last, err := b.ctl.Jobs(ctx)
	for err == nil {
		for _, v := range views {
			if slices.Contains(ids, v.Job.ID) && !slices.Contains(not, v.Job.ID) && v.Job.State == job.Running {
				return v
			}
		}
		views, last, _, err = b.ctl.Next(ctx, last)
	}
	b.t.Fatal(err)
	return state.View{}
}

// dozer is a hand that can suspend.
type dozer struct {
	*hand
	calls chan string
}

func (d dozer) Suspend(context.Context, engine.Ref) error { d.calls <- "suspend"; return nil }
func (d dozer) Resume(context.Context, engine.Ref) error  { d.calls <- "resume"; return nil }

func TestSuspend(t *testing.T) {
	d := dozer{newHand(1, 8), make(chan string, 9)}
	b := openFor(t, d, d.hand, control.Config{})
	id := b.submit(gang(1, 8))
	v := b.launched(id)
	b.hand.start(v)
	b.begun(id)
	for _, on := range []bool{true, false, true} {
		if err := ask(t.Context(), b.ctl, id, control.Suspend{On: on}); err != nil {
			t.Fatal(err)
		}
		want, state := "resume", job.Running
		if on {
			want, state = "suspend", job.Suspended
		}
		if got := <-d.calls; got != want {
			t.Errorf("the engine was told to %s, want %s", got, want)
		}
		b.state(id, state)
	}
	b.reopen()
	b.state(id, job.Suspended)
	if got := <-d.calls; got != "suspend" {
		t.Errorf("after a restart the engine was told to %s", got)
	}
	b.hand.end(v, engine.Exited, 0)
	b.state(id, job.Completed)
}

func TestADrainedNodeTakesNothingNew(t *testing.T) {
	b := open(t, newHand(2, 8))
	first := b.launched(b.submit(gang(1, 8)))
	node := first.Claims[0].Node
	if err := b.ctl.SetNodes(t.Context(), job.Actor{Name: "root", From: "socket"}, []string{node}, true, "bad fan"); err != nil {
		t.Fatal(err)
	}
	second := b.launched(b.submit(gang(1, 8)))
	if second.Claims[0].Node == node {
		t.Errorf("a job began on the drained node %s", node)
	}
	third := b.submit(gang(1, 8))
	b.hand.end(first, engine.Exited, 0)
	b.state(first.Job.ID, job.Completed)
	b.reopen()
	b.until(third, "waiting", func(v state.View) bool { return v.Job.State == job.Pending && v.Why.Code != reason.None })
	views, err := b.ctl.NodeViews(t.Context())
	if err != nil || len(views) != 2 {
		t.Fatal(views, err)
	}
	for _, v := range views {
		if v.Node.Name == node {
			if v.Node.State != fleet.Draining || v.Drained == nil || v.Drained.Reason != "bad fan" || v.Drained.By.Name != "root" || len(v.Jobs) != 0 {
				t.Errorf("the drained node is %+v", v)
			}
		} else if v.Node.State != fleet.Up || len(v.Held[3]) != 1 || v.Jobs[0] != second.Job.ID {
			t.Errorf("the other node is %+v", v)
		}
	}
	if err := b.ctl.SetNodes(t.Context(), job.Actor{}, []string{node, "nowhere"}, false, ""); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a node that is not there: %v", err)
	}
	b.waitsStill(third)
	if err := b.ctl.SetNodes(t.Context(), job.Actor{}, []string{node}, false, ""); err != nil {
		t.Fatal(err)
	}
	b.launched(third)
}

// A process that nothing ends drains its node, with the reason; who resumes the node is
// not overruled by a later word about the same process.
func TestAStuckProcessDrainsItsNode(t *testing.T) {
	b := open(t, newHand(1, 8))
	v := b.launched(b.submit(gang(1, 4)))
	say := func(message string) {
		b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Ending, Started: time.Now(), Uncertain: true, Message: message, Nodes: []engine.NodeReport{{Node: "n1", Stuck: "4711 (python, state D)"}}})
	}
	say("first")
	b.until(v.Job.ID, "uncertain", func(v state.View) bool { return v.Job.Flags&job.Uncertain != 0 })
	nodes, err := b.ctl.NodeViews(t.Context())
	if want := "SIGKILL does not end process 4711 (python, state D) of job 1 on n1"; err != nil || nodes[0].Drained == nil || nodes[0].Drained.Reason != want || nodes[0].Node.State != fleet.Draining {
		t.Fatalf("%+v, %v", nodes[0], err)
	}
	b.waitsStill(b.submit(gang(1, 4)))
	if err := b.ctl.SetNodes(t.Context(), job.Actor{}, []string{"n1"}, false, ""); err != nil {
		t.Fatal(err)
	}
	say("second")
	b.until(v.Job.ID, "told again", func(v state.View) bool { return v.Report.Message == "second" })
	b.launched(2)
}

func (b *bench) waitsStill(id job.ID) {
	b.t.Helper()
	if v, err := b.ctl.Job(b.t.Context(), id); err != nil || v.Job.State != job.Pending {
		b.t.Errorf("job %d is %s, %v", id, v.Job.State, err)
	}
}

func TestTokensAreKept(t *testing.T) {
	b := open(t, newHand(1, 1))
	who := job.Actor{Name: "root"}
	in := state.Token{ID: "abc", Hash: "h", Name: "u", Accounts: []string{"lab"}, Created: time.Unix(5, 0).UTC()}
	if err := b.ctl.PutToken(t.Context(), who, in); err != nil {
		t.Fatal(err)
	}
	if err := b.ctl.PutToken(t.Context(), who, in); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the same token again: %v", err)
	}
	if err := b.ctl.RevokeToken(t.Context(), who, "none"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a token that is not there: %v", err)
	}
	b.reopen()
	got, ok := b.ctl.TokenByID("abc")
	if d := cmp.Diff(in, got); !ok || d != "" {
		t.Error(ok, d)
	}
	for range 2 {
		if err := b.ctl.RevokeToken(t.Context(), who, "abc"); err != nil {
			t.Error(err)
		}
	}
	b.reopen()
	if all, err := b.ctl.Tokens(t.Context()); err != nil || len(all) != 1 || all[0].Revoked.IsZero() {
		t.Errorf("%+v %v", all, err)
	}
}

// TestTokensEndWithTheOneThatTheyWereMadeWith: revoking a token revokes those made with it and those made with
// these, and no others; none is made with a revoked one. It is the same after a restart.
//
// Seen to fail without Under in RevokeToken, and without PutToken's look at the parent.
func TestTokensEndWithTheOneThatTheyWereMadeWith(t *testing.T) {
	b := open(t, newHand(1, 1))
	who := job.Actor{Name: "root"}
	put := func(id, parent string) error {
		return b.ctl.PutToken(t.Context(), who, state.Token{ID: id, Hash: "h", Parent: parent, Created: time.Unix(5, 0).UTC()})
	}
	for _, k := range [][2]string{{"a", ""}, {"b", "a"}, {"c", "b"}, {"d", ""}, {"e", "d"}} {
		if err := put(k[0], k[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.ctl.RevokeToken(t.Context(), who, "a"); err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{"b", "none"} {
		if err := put("f", parent); fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "" {
			t.Errorf("a token made with %s: %v", parent, err)
		}
	}
	for range 2 {
		all, err := b.ctl.Tokens(t.Context())
		got := ""
		for _, k := range all {
			if k.Revoked.IsZero() {
				got += k.ID
			}
		}
		if err != nil || len(all) != 5 || got != "de" {
			t.Errorf("%q of %d are valid, %v", got, len(all), err)
		}
		b.reopen()
	}
}

// TestSessionsAreForgotten: a session is gone when it is revoked, a user's oldest one when there are too many,
// and expired ones when another begins; tokens of other kinds stay. It is the same after a restart.
//
// Seen to fail without TokenSet.Revoke's removal, TokenSet.Put's, and Surplus in PutToken.
func TestSessionsAreForgotten(t *testing.T) {
	b := open(t, newHand(1, 1))
	who, begun := job.Actor{Name: "root"}, time.Now().UTC()
	put := func(id string, uid uint32, session bool, expires time.Time) {
		t.Helper()
		if err := b.ctl.PutToken(t.Context(), who, state.Token{ID: id, Hash: "h", UID: uid, Session: session, Created: begun, Expires: expires}); err != nil {
			t.Fatal(err)
		}
		begun = begun.Add(time.Second)
	}
	kept := func() string {
		t.Helper()
		all, err := b.ctl.Tokens(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, k := range all {
			ids = append(ids, k.ID)
		}
		return strings.Join(ids, " ")
	}
	later := begun.Add(1000 * time.Hour)
	put("token", 1, false, begun.Add(-time.Hour))
	put("other", 2, true, later)
	put("over", 1, true, begun.Add(-time.Hour))
	var want []string
	for i := range state.MostSessions + 2 {
		id := fmt.Sprintf("s%02d", i)
		put(id, 1, true, later)
		want = append(want, id)
	}
	got, all := kept(), "token other "+strings.Join(want[2:], " ")
	if got != all {
		t.Errorf("%s\nwant %s", got, all)
	}
	if err := b.ctl.RevokeToken(t.Context(), who, "s05"); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	if got, all := kept(), strings.Replace(all, "s05 ", "", 1); got != all {
		t.Errorf("after a restart: %s\nwant %s", got, all)
	}
	if err := b.ctl.RevokeToken(t.Context(), who, "s05"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("revoked again: %v", err)
	}
}

// TestEventsAreTheJournal: what watchers hear is the same whether it is fresh, comes
// out of the journal or is asked for after a restart.
func TestEventsAreTheJournal(t *testing.T) {
	b := open(t, newHand(1, 8))
	s := gang(1, 2)
	s.Owner = job.Owner{User: "u"}
	s.Array = &job.ArraySpec{Text: "3,4", Indices: []uint32{3, 4}, Step: 1}
	id := b.submit(s)
	comment := "c"
	for _, op := range []control.Op{control.Hold{On: true}, control.Hold{}, control.Update{Comment: &comment}} {
		if err := ask(t.Context(), b.ctl, id+1, op); err != nil {
			t.Fatal(err)
		}
	}
	b.finish(id, 3)
	if err := ask(t.Context(), b.ctl, id, control.Requeue{}); err != nil {
		t.Fatal(err)
	}
	b.launched(id)
	if err := b.ctl.SetNodes(t.Context(), job.Actor{Name: "root"}, []string{"n1"}, true, "why"); err != nil {
		t.Fatal(err)
	}
	fresh := b.events(b.ctl.LastEvent())
	kinds := map[string]bool{}
	for i, ev := range fresh {
		if ev.Seq != uint64(i+1) {
			t.Errorf("event %d has the number %d", i+1, ev.Seq)
		}
		kinds[ev.Kind] = true
	}
	if first := fresh[0]; first.Kind != state.EventSubmitted || first.Count != 2 || first.User != "u" || first.Job != id {
		t.Errorf("the first event is %+v", first)
	}
	for _, kind := range []string{state.EventHeld, state.EventReleased, state.EventUpdated, state.EventAllocated, state.EventStarted, state.EventEnded, state.EventRequeued, state.EventDrained} {
		if !kinds[kind] {
			t.Errorf("no event is %s", kind)
		}
	}
	b.reopen()
	if d := cmp.Diff(fresh, b.events(uint64(len(fresh)))); d != "" {
		t.Error("after a restart:", d)
	}
	if _, last, gap, err := b.ctl.Events(t.Context(), 1000); !gap || err != nil || last < uint64(len(fresh)) {
		t.Errorf("events after the end: gap %v up to %d, %v", gap, last, err)
	}
	if _, err := b.store.Purge(t.Context(), 2, store.PurgeRequest{RecordsBefore: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
}

// events reads all events up to a number.
func (b *bench) events(upTo uint64) (out []state.Event) {
	b.t.Helper()
	for after := uint64(0); after < upTo; {
		evs, last, gap, err := b.ctl.Events(b.t.Context(), after)
		if err != nil || gap {
			b.t.Fatal(gap, err)
		}
		for _, ev := range evs {
			if ev.Seq <= upTo {
				out = append(out, ev)
			}
		}
		after = last
	}
	return out
}

func TestAStartThatTheLedgerRefusesIsPutOff(t *testing.T) {
	c := newClock()
	b := openWith(t, newHand(2, 8), control.Config{Clock: c})
	if err := b.ctl.RefuseStarts(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	s := gang(1, 8)
	s.Groups[0].NodeList = []string{"n1"}
	id := b.submit(s)
	v := b.until(id, "put off", func(v state.View) bool { return v.Why.Code == reason.Refused })
	if v.Why.Want == "" || b.ctl.Stats().Refused != 3 {
		t.Errorf("%+v after %d refusals", v.Why, b.ctl.Stats().Refused)
	}
	s = gang(1, 8)
	s.Groups[0].NodeList = []string{"n2"}
	b.launched(b.submit(s))
	b.pass(c, time.Minute)
	b.until(id, "put off again", func(v state.View) bool { return v.Why.Code == reason.Refused && b.ctl.Stats().Refused == 4 })
}

func TestHistoryAndFind(t *testing.T) {
	b := openWith(t, newHand(1, 8), control.Config{Keep: time.Nanosecond, Project: time.Millisecond})
	s := gang(1, 1)
	s.Array = &job.ArraySpec{Text: "10-14:2", Indices: []uint32{10, 12, 14}, Step: 2}
	s.Source.Given = map[string]string{"array": "10-14:2"}
	id := b.submit(s)
	for i := range 3 {
		b.hand.end(b.launched(id+job.ID(i)), engine.Exited, i)
	}
	for i := range 3 {
		b.forgotten(id + job.ID(i))
	}
	v, err := b.ctl.Find(t.Context(), id, 12)
	if err != nil || v.Job.ID != id+1 || v.Job.Name() != "1_12" || v.Job.Exit.Status != 1 || v.Job.Spec.Source.Given["array"] == "" {
		t.Errorf("task 12 is %+v, %v", v.Job, err)
	}
	for _, missing := range []uint32{11, 16} {
		if _, err := b.ctl.Find(t.Context(), id, missing); fault.KindOf(err) != fault.NotFound {
			t.Errorf("task %d: %v", missing, err)
		}
	}
	var names []string
	next, err := b.ctl.History(t.Context(), store.Query{Limit: 2}, func(v *state.View) bool {
		names = append(names, fmt.Sprint(v.Job.Name(), v.Job.State))
		return true
	})
	if err != nil || next != uint64(id+1) || !slices.Equal(names, []string{"1_14FAILED", "1_12FAILED"}) {
		t.Errorf("%v, next %d, %v", names, next, err)
	}
	next, err = b.ctl.History(t.Context(), store.Query{Limit: 2, Below: next}, func(*state.View) bool { return true })
	if err != nil || next != 0 {
		t.Errorf("the last page names %d, %v", next, err)
	}
}
