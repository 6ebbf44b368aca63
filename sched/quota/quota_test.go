package quota_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/quota"
	"github.com/coxswain-sched/coxswain/sched/schedtest"
)

// held is one charge, as the slow twin keeps them.
type held struct {
	queue   int32
	charges []quota.Charge
}

// slow answers from the list of all charges by the definitions alone.
type slow struct {
	*quota.Tree
	all []held
}

func (s *slow) lend(n, fr int32) resource.Amount { _, l := s.Limits(n, fr); return l }

func (s *slow) subtree(n, fr int32) resource.Amount {
	sum := s.Nominal(n, fr)
	for _, c := range s.Children(n) {
		sum = sum.Add(min(s.subtree(c, fr), s.lend(c, fr)))
	}
	return sum
}

func (s *slow) guaranteed(n, fr int32) resource.Amount {
	return s.subtree(n, fr).Sub(min(s.subtree(n, fr), s.lend(n, fr)))
}

func (s *slow) used(n, fr int32) resource.Amount {
	var sum resource.Amount
	for _, h := range s.all {
		for _, c := range h.charges {
			if h.queue == n && c.FR == fr {
				sum = sum.Add(c.Amount)
			}
		}
	}
	for _, c := range s.Children(n) {
		sum = sum.Add(max(0, s.used(c, fr).Sub(s.guaranteed(c, fr))))
	}
	return sum
}

// sound reports whether nothing is held beyond nominal amounts and limits.
func (s *slow) sound() bool {
	for n := range int32(s.Len()) {
		for fr := range int32(len(s.FRs)) {
			most := s.subtree(n, fr)
			if borrow, _ := s.Limits(n, fr); s.Parent(n) != quota.None {
				most = most.Add(borrow)
			}
			if s.used(n, fr) > most {
				return false
			}
		}
	}
	return true
}

// available is the most that may be added so that everything stays sound, by trying.
func (s *slow) available(n, fr int32) resource.Amount {
	a := resource.Amount(0)
	for step := resource.Amount(1 << 20); step > 0; step /= 2 {
		more := slow{s.Tree, append(slices.Clone(s.all), held{n, []quota.Charge{{FR: fr, Amount: a + step}}})}
		if more.sound() {
			a += step
		}
	}
	return a
}

func draw(t *rapid.T) *quota.Tree {
	flavors, accounts := schedtest.Quotas(t)
	tree, err := quota.New(&account.Policy{Flavors: flavors, Accounts: accounts})
	if err != nil {
		t.Fatal(err)
	}
	if tree == nil || len(tree.FRs) == 0 {
		t.Skip("no quotas")
	}
	return tree
}

func queues(tree *quota.Tree) (out []int32) {
	for n := range int32(tree.Len()) {
		if len(tree.Children(n)) == 0 {
			out = append(out, n)
		}
	}
	return out
}

// TestCounts: charges come and go in any order. After each, usage is what follows
// from the list of charges, what is available is the most that keeps every nominal
// amount and limit, and nothing that fits breaks one.
func TestCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := draw(t)
		s, twin := tree.NewState(), &slow{Tree: tree}
		all := queues(tree)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for n := range int32(tree.Len()) {
					for fr := range int32(len(tree.FRs)) {
						if got, want := s.Used(n, fr), twin.used(n, fr); got != want {
							t.Fatalf("%s uses %d of %s, it should be %d", tree.Names[n], got, tree.Text(fr), want)
						}
						if got, want := s.Available(n, fr), twin.available(n, fr); got != want {
							t.Fatalf("%s may take %d of %s, it should be %d", tree.Names[n], got, tree.Text(fr), want)
						}
						if len(twin.all) == 0 && s.Available(n, fr) != tree.Potential(n, fr) {
							t.Fatalf("%s could hold %d of %s, and may take %d of nothing held", tree.Names[n], tree.Potential(n, fr), tree.Text(fr), s.Available(n, fr))
						}
						guarantee(t, tree, s, n, fr)
					}
				}
				for _, q := range all {
					short(t, s, q)
				}
			},
			"add": func(t *rapid.T) {
				h := held{queue: rapid.SampledFrom(all).Draw(t, "queue")}
				for fr := range int32(len(tree.FRs)) {
					if a := rapid.IntRange(0, 5).Draw(t, "amount"); a > 0 {
						h.charges = append(h.charges, quota.Charge{FR: fr, Amount: 500 * resource.Amount(a)})
					}
				}
				if s.Fits(h.queue, h.charges) {
					s.Add(h.queue, h.charges)
					twin.all = append(twin.all, h)
				}
				if !twin.sound() {
					t.Fatalf("%v fitted, and more is held than there is", h)
				}
			},
			"remove": func(t *rapid.T) {
				if len(twin.all) == 0 {
					return
				}
				i := rapid.IntRange(0, len(twin.all)-1).Draw(t, "which")
				s.Remove(twin.all[i].queue, twin.all[i].charges)
				twin.all = slices.Delete(twin.all, i, i+1)
			},
		})
	})
}

// guarantee: what a queue never lends is there for it, whatever others hold, as far
// as it does not use it itself.
func guarantee(t *rapid.T, tree *quota.Tree, s *quota.State, n, fr int32) {
	_, lend := tree.Limits(n, fr)
	own := max(0, tree.Subtree(n, fr).Sub(lend).Sub(s.Used(n, fr)))
	if lend != resource.Unlimited && s.Available(n, fr) < own {
		t.Fatalf("%s may take %d of %s, and never lends %d that it does not use", tree.Names[n], s.Available(n, fr), tree.Text(fr), own)
	}
	if l := s.Lent(n, fr); l < 0 || l > min(lend, tree.Subtree(n, fr)) {
		t.Fatalf("%s lends %d of %s, at most %d", tree.Names[n], l, tree.Text(fr), lend)
	}
}

// TestOrderOfCharges: what is held does not depend on the order in which it came.
func TestOrderOfCharges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := draw(t)
		all := queues(tree)
		var list []held
		for range rapid.IntRange(1, 6).Draw(t, "charges") {
			fr := int32(rapid.IntRange(0, len(tree.FRs)-1).Draw(t, "fr"))
			list = append(list, held{rapid.SampledFrom(all).Draw(t, "queue"), []quota.Charge{{FR: fr, Amount: resource.Amount(rapid.IntRange(1, 3000).Draw(t, "amount"))}}})
		}
		a, b := tree.NewState(), tree.NewState()
		for _, h := range list {
			a.Add(h.queue, h.charges)
		}
		for _, h := range rapid.Permutation(list).Draw(t, "order") {
			b.Add(h.queue, h.charges)
		}
		for n := range int32(tree.Len()) {
			for fr := range int32(len(tree.FRs)) {
				if a.Used(n, fr) != b.Used(n, fr) {
					t.Fatalf("%s uses %d or %d of %s", tree.Names[n], a.Used(n, fr), b.Used(n, fr), tree.Text(fr))
				}
			}
			if a.Share(n).Compare(b.Share(n)) != 0 {
				t.Fatalf("%s has two shares", tree.Names[n])
			}
		}
	})
}

// short: what is said to be more than a queue could be given fits in no flavour, and of
// one thing alone what is not fits in some.
//
// Seen to fail with: a queue's first flavour instead of the best one in Most, and with
// the amount itself taken for too much in Short.
func short(t *rapid.T, s *quota.State, q int32) {
	most := s.Most(q, nil)
	for r := range s.Resources {
		for _, a := range []resource.Amount{most[r], most[r].Add(1), resource.Amount(rapid.IntRange(1, 4000).Draw(t, "needs"))} {
			if a <= 0 || a == resource.Unlimited {
				continue
			}
			needs := []quota.Need{{Resource: int32(r), Amount: a}}
			fits := s.Assign(q, needs, nil, nil).Mode == quota.Fit
			if counted := most[r] != resource.Unlimited; counted && fits == quota.Short(needs, most) {
				t.Fatalf("%s: %d of %s fits: %v, at most it could be given %d", s.Names[q], a, s.Resources[r], fits, most[r])
			}
		}
	}
}

// TestRefusedQuotas: what contradicts itself is named.
func TestRefusedQuotas(t *testing.T) {
	gpu := func(n resource.Amount) []account.ResourceQuota {
		return []account.ResourceQuota{{Name: "gpu", Nominal: n}}
	}
	of := func(list ...account.FlavorQuota) *account.Quota { return &account.Quota{Flavors: list} }
	flavors := []account.Flavor{{Name: "a"}, {Name: "b"}}
	for _, c := range []struct {
		accounts []account.Account
		want     string
	}{
		{[]account.Account{{Name: "x", Quota: of()}, {Name: "x"}}, "twice"},
		{[]account.Account{{Name: "x", Parent: "y", Quota: of()}}, "does not exist"},
		{[]account.Account{{Name: "x", Parent: "y", Quota: of()}, {Name: "y", Parent: "x"}}, "own ancestors"},
		{[]account.Account{{Name: "x", Quota: of(account.FlavorQuota{Flavor: "z"})}}, "no flavor z"},
		{[]account.Account{{Name: "x", Quota: of(account.FlavorQuota{Flavor: "a", Resources: gpu(-1)})}}, "negative"},
		{[]account.Account{{Name: "x", Quota: of(account.FlavorQuota{Flavor: "a", Resources: append(gpu(1), gpu(1)...)})}}, "names gpu twice"},
		{[]account.Account{{Name: "x", Quota: of(account.FlavorQuota{Flavor: "a", Resources: gpu(1)}, account.FlavorQuota{Flavor: "a", Resources: gpu(1)})}}, "stands there twice"},
		{[]account.Account{{Name: "x", Quota: of(account.FlavorQuota{Flavor: "a", Resources: gpu(1)}, account.FlavorQuota{Flavor: "b", Resources: append(gpu(1), account.ResourceQuota{Name: "cpu"})})}}, "must have the same resources"},
	} {
		_, err := quota.New(&account.Policy{Flavors: flavors, Accounts: c.accounts})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, it should say %q", err, c.want)
		}
	}
}
