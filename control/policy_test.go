package control_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// tiers is a document in which partitions have tiers.
func tiers(text string, of map[string]int32) control.PolicyChange {
	p := &account.Policy{}
	for name, tier := range of {
		p.Partitions = append(p.Partitions, account.Partition{Name: name, Tier: tier})
	}
	return control.PolicyChange{Rules: p, Text: text, File: "queues.yaml"}
}

func (b *bench) set(ch control.PolicyChange) state.Policy {
	b.t.Helper()
	v, err := b.ctl.SetPolicy(b.t.Context(), job.Actor{Name: "root", From: "socket"}, ch)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

func (b *bench) policy(rev uint64) state.Policy {
	b.t.Helper()
	v, err := b.ctl.Policy(b.t.Context(), rev)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// TestPolicyIsKept: a policy with its text, who set it and its history outlives the
// server, out of the journal and out of the projection.
func TestPolicyIsKept(t *testing.T) {
	b := open(t, newHand(1, 8))
	if v := b.policy(0); v.Revision != 0 || v.Rules == nil || len(v.Rules.Partitions) != 0 {
		t.Fatalf("before any was set: %+v", v)
	}
	first := b.set(tiers("one", map[string]int32{"p": 1}))
	second := b.set(tiers("two", map[string]int32{"p": 2}))
	if first.Revision != 1 || second.Revision != 2 || second.By.Name != "root" || second.At.IsZero() || second.Hash == first.Hash {
		t.Fatalf("%+v\n%+v", first, second)
	}
	if again := b.set(tiers("two", map[string]int32{"p": 2})); again.Revision != 2 {
		t.Errorf("the same document made revision %d", again.Revision)
	}
	for _, how := range []string{"live", "after a restart"} {
		if d := cmp.Diff(second, b.policy(0)); d != "" {
			t.Error(how, d)
		}
		if d := cmp.Diff(first, b.policy(1)); d != "" {
			t.Error(how, d)
		}
		list, err := b.ctl.Policies(t.Context())
		if err != nil || len(list) != 2 || list[0].Revision != 1 || list[1].Hash != second.Hash || list[1].Text != "" {
			t.Errorf("%s: %+v %v", how, list, err)
		}
		if _, err := b.ctl.Policy(t.Context(), 7); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: revision 7: %v", how, err)
		}
		b.reopen()
	}
}

// TestTwoEditorsOfThePolicy: of two who start from the same revision one is refused.
func TestTwoEditorsOfThePolicy(t *testing.T) {
	b := open(t, newHand(1, 8))
	base := b.set(tiers("base", nil)).Revision
	results := make(chan error, 8)
	for i := range cap(results) {
		go func() {
			ch := tiers(fmt.Sprint("editor ", i), nil)
			ch.Base = &base
			_, err := b.ctl.SetPolicy(t.Context(), job.Actor{Name: "root"}, ch)
			results <- err
		}()
	}
	won := 0
	for range cap(results) {
		switch err := <-results; {
		case err == nil:
			won++
		case fault.KindOf(err) != fault.Conflict || fault.Remedy(err) == "":
			t.Error(err)
		}
	}
	if v := b.policy(0); won != 1 || v.Revision != base+1 {
		t.Errorf("%d editors won, revision %d", won, v.Revision)
	}
	zero := uint64(0)
	if _, err := b.ctl.SetPolicy(t.Context(), job.Actor{}, control.PolicyChange{Text: "x", Rules: &account.Policy{}, Base: &zero}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("over revision 0: %v", err)
	}
}

// TestPolicyHistoryHasAnEnd: old revisions are forgotten, in memory and in the store.
func TestPolicyHistoryHasAnEnd(t *testing.T) {
	b := open(t, newHand(1, 8))
	const n = 130
	for i := range n {
		b.set(tiers(fmt.Sprint("document ", i), nil))
	}
	for range 2 {
		list, err := b.ctl.Policies(t.Context())
		if err != nil || len(list) != 100 || list[99].Revision != n {
			t.Fatalf("%d revisions, %v", len(list), err)
		}
		if v := b.policy(n - 99); v.Text != fmt.Sprint("document ", n-100) {
			t.Errorf("%+v", v)
		}
		if _, err := b.ctl.Policy(t.Context(), n-100); fault.KindOf(err) != fault.NotFound {
			t.Error(err)
		}
		b.reopen()
	}
}

// TestPolicyReachesTheCore: the rules decide what starts next, at once and after a
// restart.
func TestPolicyReachesTheCore(t *testing.T) {
	b := open(t, newHand(1, 8))
	one := func(part string) job.ID {
		s := gang(1, 8)
		s.Partitions = []string{part}
		return b.submit(s)
	}
	first := one("p")
	b.launched(first)
	low, high := one("p"), one("q")
	b.set(tiers("tiers", map[string]int32{"q": 2}))
	b.reopen()
	b.finish(first, 0)
	b.launched(high)
	if v := b.state(low, job.Pending); len(v.Claims) > 0 {
		t.Errorf("%+v", v)
	}
	b.finish(high, 0)
	b.launched(low)
	evs := b.events(b.ctl.LastEvent())
	if !slices.ContainsFunc(evs, func(e state.Event) bool {
		return e.Kind == state.EventPolicy && e.By == "root" && e.Message == "revision 1"
	}) {
		t.Errorf("no event tells of the policy: %+v", evs)
	}
}
