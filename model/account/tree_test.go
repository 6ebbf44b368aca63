package account_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/model/account"
)

func TestTree(t *testing.T) {
	tree := account.NewTree(&account.Policy{Accounts: []account.Account{
		{Name: "vision", Parent: "research", Users: []account.User{{Name: "ann"}, {Name: "bob", Default: true}}},
		{Name: "research", Shares: 7},
		{Name: "speech", Parent: "research", Users: []account.User{{Name: "ann", Shares: 3}, {Name: "cid"}}},
		{Name: "guests"},
		{Name: "lost", Parent: "nowhere"},
		{Name: "one", Parent: "two", Users: []account.User{{Name: "bob"}, {Name: "cid", Default: true}}},
		{Name: "two", Parent: "one"},
		{Name: "guests", Shares: 9}, // the first of two counts
	}})
	for i, n := range tree.Nodes {
		if (n.Parent < 0) != (i == 0) || n.Parent >= int32(i) {
			t.Errorf("%v, number %d, stands before its parent %d", n.Ref, i, n.Parent)
		}
		if got := tree.Find(n.Ref); got != int32(i) {
			t.Errorf("%v is number %d and found as %d", n.Ref, i, got)
		}
	}
	for _, c := range []struct{ account, user, want string }{
		{"vision", "ann", "vision/ann"},
		{"vision", "cid", ""}, // not his
		{"research", "ann", ""},
		{"guests", "ann", "guests"},
		{"guests", "", "guests"},
		{"lost", "zoe", "lost"},
		{"unknown", "ann", ""},
		{"", "ann", "vision/ann"},
		{"", "bob", "vision/bob"},
		{"", "cid", "one/cid"},
		{"", "zoe", ""},
	} {
		got := ""
		if i := tree.Of(c.account, c.user); i >= 0 {
			n := tree.Nodes[i]
			if got = n.Account; n.User != "" {
				got += "/" + n.User
			}
		}
		if got != c.want {
			t.Errorf("account %q, user %q: association %q, want %q", c.account, c.user, got, c.want)
		}
	}
	up := func(name string) string {
		return tree.Nodes[tree.Nodes[tree.Find(account.Ref{Account: name})].Parent].Account
	}
	for name, want := range map[string]string{"vision": "research", "research": "root", "lost": "root", "one": "root", "two": "root", "guests": "root"} {
		if got := up(name); got != want {
			t.Errorf("%s stands below %s, want %s", name, got, want)
		}
	}
	if g := tree.Nodes[tree.Find(account.Ref{Account: "guests"})]; g.Shares != 0 || !g.Open {
		t.Errorf("guests is %+v", g)
	}
}
