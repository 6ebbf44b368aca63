package settings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestWhereAccountsAre: the namespace of a job is its account's, and as whom it is made is said by
// who submits, then by the account, then for all.
func TestWhereAccountsAre(t *testing.T) {
	terms := settings.Terms{
		Pool: "k8s-a", Namespace: "base", Namespaces: map[string]string{"nlp": "team-nlp", "vision": "team-vision", "vis2": "team-vision"},
		Impersonate: map[string]settings.Subject{"nlp": {Kind: "User", Name: "nlp-batch"}, "vision": {Kind: "ServiceAccount", Name: "runner"}, "user:ada": {Kind: "ServiceAccount", Namespace: "people", Name: "ada"}},
	}
	for _, x := range []struct{ user, account, space, as string }{
		{"bob", "nlp", "team-nlp", "nlp-batch"},
		{"bob", "vision", "team-vision", "system:serviceaccount:team-vision:runner"},
		{"ada", "vision", "team-vision", "system:serviceaccount:people:ada"},
		{"bob", "vis2", "team-vision", ""},
		{"bob", "", "base", ""},
		{"ada", "", "base", "system:serviceaccount:people:ada"},
	} {
		s := &job.Spec{Owner: job.Owner{User: x.user}, Account: x.account}
		ns, ok := terms.NamespaceOf(x.account)
		who, as := terms.ImpersonatedSubject(s, ns)
		if ns != x.space || !ok || as != (x.as != "") || as && who.UserName() != x.as {
			t.Errorf("%s of %q: %s %v as %+v", x.user, x.account, ns, ok, who)
		}
	}
	if got := terms.Spaces(); !slices.Equal(got, []string{"base", "team-nlp", "team-vision"}) {
		t.Errorf("%q", got)
	}
	// As the pool's own account what has no identity is made, and there alone.
	for ns, want := range map[string]struct {
		own bool
		who string
	}{"base": {true, "people/ada"}, "team-nlp": {false, "people/ada /nlp-batch"}, "team-vision": {true, "people/ada team-vision/runner"}} {
		all, own := terms.ObjectCreators(ns)
		var got []string
		for _, w := range all {
			got = append(got, w.Namespace+"/"+w.Name)
		}
		if own != want.own || strings.Join(got, " ") != want.who {
			t.Errorf("%s: %v %q, want %+v", ns, own, got, want)
		}
	}
	terms.Impersonate[settings.KeyOthers] = settings.Subject{Kind: "User", Name: "jobs"}
	for _, ns := range terms.Spaces() {
		if _, own := terms.ObjectCreators(ns); own {
			t.Errorf("%s: with an identity for all others something is made as the pool's own account", ns)
		}
	}
	if who, ok := terms.ImpersonatedSubject(&job.Spec{Account: "vis2"}, "team-vision"); !ok || who.UserName() != "jobs" {
		t.Errorf("%+v %v", who, ok)
	}
	terms.OnlyNamed = true
	if err := terms.CheckJob(&job.Spec{Account: "nlp", WorkDir: "/tmp"}); err != nil {
		t.Error(err)
	}
	for account, want := range map[string]string{"": "a job without an account has no namespace in the cluster: the pool has those of nlp, vis2, vision", "law": "account law has no namespace"} {
		if err := terms.CheckJob(&job.Spec{Account: account, WorkDir: "/tmp"}); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) || fault.Remedy(err) == "" {
			t.Errorf("%q: %v", account, err)
		}
	}
	if got := terms.Spaces(); !slices.Equal(got, []string{"team-nlp", "team-vision"}) {
		t.Errorf("%q", got)
	}
}
