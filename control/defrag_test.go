package control_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// fragmented is a site of two nodes with four devices each, of which a job that saves
// holds two of each.
func fragmented(t *testing.T, mode string) (b *bench, small []job.ID, gang4 job.ID) {
	b = open(t, newHand(2, 4))
	p := &account.Policy{Preemption: account.Preemption{Defrag: mode, Grace: account.Duration(9 * time.Second)}}
	if _, err := b.ctl.SetPolicy(t.Context(), job.Actor{Name: "me"}, control.PolicyChange{Rules: p, Text: mode}); err != nil {
		t.Fatal(err)
	}
	var all []job.ID
	for range 4 {
		s := gang(1, 2)
		s.Requeue = true
		id := b.submit(s)
		b.hand.start(b.launched(id))
		b.begun(id)
		all = append(all, id)
	}
	for _, id := range []job.ID{all[0], all[2]} {
		b.hand.end(b.launched(id), engine.Exited, 0)
		b.state(id, job.Completed)
	}
	small = []job.ID{all[1], all[3]}
	if b.launched(small[0]).Claims[0].Node == b.launched(small[1]).Claims[0].Node {
		t.Fatal("they are on one node")
	}
	for _, id := range small {
		if err := ask(t.Context(), b.ctl, id, control.Saved{}); err != nil {
			t.Fatal(err)
		}
	}
	return b, small, b.submit(gang(1, 4))
}

// TestAJobMoves: a job that saves is told to save and stopped, the gang for which it
// moves gets its place, and it goes on in its new one, which was kept for it;
// also when the server is restarted in between.
func TestAJobMoves(t *testing.T) {
	for _, crash := range []string{"", "asked", "gone"} {
		t.Run("restart "+crash, func(t *testing.T) {
			b, small, large := fragmented(t, account.DefragAutomatic)
			v := b.until(large, "nominated", func(v state.View) bool { return v.Why.Code == reason.Preempting })
			moved := job.ID(v.Why.Job)
			stays := small[0] + small[1] - moved
			first := b.launched(moved)
			if crash == "asked" {
				b.reopen()
				b.until(large, "nominated again", func(v state.View) bool { return v.Why.Code == reason.Preempting })
			}
			eventually(t, "it is asked to move", func() bool { // the gang's reason is shown before that
				m, err := b.ctl.Moves(t.Context())
				return err == nil && len(m.Moving) == 1 && m.Moving[0].Job.ID == moved && m.Moving[0].For == large
			})
			if err := ask(t.Context(), b.ctl, moved, control.Saved{}); err != nil { // as it was told to
				t.Fatal(err)
			}
			b.hand.stopped(t, first.Ref)
			b.hand.end(first, engine.Stopped, 143)
			b.state(large, job.Running)
			v = b.until(moved, "runs again", func(v state.View) bool { return v.Ref.Attempt == 2 && v.Job.State == job.Running })
			if crash == "gone" {
				b.reopen()
				v = b.state(moved, job.Running)
			}
			if v.Claims[0].Node != b.launched(stays).Claims[0].Node || b.launched(large).Claims[0].Node == v.Claims[0].Node {
				t.Errorf("it runs on %s, the other one on %s, the gang on %s", v.Claims[0].Node, b.launched(stays).Claims[0].Node, b.launched(large).Claims[0].Node)
			}
		})
	}
}

// TestMovesAreProposed: with ask nothing moves until somebody approves what is
// proposed; the proposal is the same after a restart, and another one than is proposed
// is refused.
func TestMovesAreProposed(t *testing.T) {
	b, _, large := fragmented(t, account.DefragAsk)
	proposed := func() *query.Proposal {
		t.Helper()
		b.until(large, "waits", func(v state.View) bool { return v.Why.Code != reason.None })
		var m query.Moves
		eventually(t, "moves are proposed", func() bool {
			var err error
			if m, err = b.ctl.Moves(t.Context()); err != nil {
				t.Fatal(err)
			}
			return m.Proposal != nil
		})
		return m.Proposal
	}
	p := proposed()
	if len(p.Moves) != 1 || p.For.Job.ID != large || len(p.Moves[0].Home) != 1 || p.Moves[0].Lost < time.Minute {
		t.Fatalf("proposed: %+v", p)
	}
	b.reopen()
	if again := proposed(); again.ID != p.ID {
		t.Errorf("after a restart %s is proposed, it was %s", again.ID, p.ID)
	}
	if err := b.ctl.ApproveMoves(t.Context(), job.Actor{Name: "root"}, "1-abcdef"); fault.KindOf(err) != fault.Conflict {
		t.Errorf("another proposal: %v, want a conflict", err)
	}
	v := b.launched(p.Moves[0].Job.ID)
	if err := b.ctl.ApproveMoves(t.Context(), job.Actor{Name: "root"}, p.ID); err != nil {
		t.Fatal(err)
	}
	b.reopen() // it is durable
	if err := ask(t.Context(), b.ctl, v.Job.ID, control.Saved{}); err != nil {
		t.Fatal(err)
	}
	b.hand.stopped(t, v.Ref)
	b.hand.end(v, engine.Stopped, 143)
	b.state(large, job.Running)
	b.until(p.Moves[0].Job.ID, "runs again", func(v state.View) bool { return v.Ref.Attempt == 2 && v.Job.State == job.Running })
	if err := b.ctl.ApproveMoves(t.Context(), job.Actor{Name: "root"}, p.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("what was made is approved again: %v, want not found", err)
	}
}

// TestWhereNothingMoves: a mode that has no effect beside another rule is shown with
// that rule.
func TestWhereNothingMoves(t *testing.T) {
	b := open(t, newHand(1, 1))
	for _, c := range []struct {
		mode, want string
		backfill   account.Backfill
		compat     string
	}{
		{account.DefragAutomatic, "", account.Backfill{}, ""},
		{account.DefragAsk, "backfill.reservations", account.Backfill{Reservations: 3}, ""},
		{account.DefragAsk, "", account.Backfill{Reservations: 3, Off: true}, ""},
		{account.DefragAutomatic, "compat", account.Backfill{}, "slurm"},
		{account.DefragOff, "", account.Backfill{}, "slurm"},
	} {
		p := &account.Policy{Preemption: account.Preemption{Defrag: c.mode}, Backfill: c.backfill, Compat: c.compat}
		if _, err := b.ctl.SetPolicy(t.Context(), job.Actor{Name: "me"}, control.PolicyChange{Rules: p, Text: c.mode + c.want + c.compat}); err != nil {
			t.Fatal(err)
		}
		if m, err := b.ctl.Moves(t.Context()); err != nil || m.Mode != c.mode || m.Idle != c.want {
			t.Errorf("%+v: mode %q beside %q, %v", c, m.Mode, m.Idle, err)
		}
	}
}
