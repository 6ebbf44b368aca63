package settings

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Keys of Terms.Impersonate that are no account's name.
const (
	KeyUser   = "user:" // and the name of who submits: goes before the account
	KeyOthers = "*"     // of all that have no key of their own
)

// NamespaceOf is where the objects of an account's jobs are made. false: it has no namespace, and
// its jobs are refused.
func (t *Terms) NamespaceOf(account string) (string, bool) {
	if ns, ok := t.Namespaces[account]; ok {
		return ns, true
	}
	return t.Namespace, !t.OnlyNamed
}

// Spaces are the namespaces in which jobs can be, each once, in order.
func (t *Terms) Spaces() []string {
	all := map[string]bool{}
	for _, ns := range t.Namespaces {
		all[ns] = true
	}
	if !t.OnlyNamed {
		all[t.Namespace] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// RequiredNamespaces are the namespaces that have to be there: those of jobs, and that of the list of the nodes
// that are kept.
func (t *Terms) RequiredNamespaces() []string {
	all := t.Spaces()
	if t.Reserve && !slices.Contains(all, t.Namespace) {
		all = append(all, t.Namespace)
	}
	return all
}

// checkNamespace refuses a job of an account that has no namespace.
func (t *Terms) checkNamespace(s *job.Spec) error {
	if _, ok := t.NamespaceOf(s.Account); ok {
		return nil
	}
	which := "a job without an account"
	if s.Account != "" {
		which = "account " + s.Account
	}
	return engine.About(fault.New(fault.Invalid, "%s has no namespace in the cluster: the pool has those of %s", which, strings.Join(slices.Sorted(maps.Keys(t.Namespaces)), ", ")).
		Advise("name one of these by --account, or have an administrator add it to the pool's setting namespaces"), "account")
}

// ImpersonatedSubject is as whom the objects of a job are made that is in a namespace. false: as the pool's
// own account.
func (t *Terms) ImpersonatedSubject(s *job.Spec, namespace string) (Subject, bool) {
	for _, key := range []string{KeyUser + s.Owner.User, s.Account, KeyOthers} {
		if who, ok := t.Impersonate[key]; ok {
			return who.inNamespace(namespace), true
		}
	}
	return Subject{}, false
}

// ObjectCreators are all as whom objects may be made in a namespace, but for the pool's own account, in
// order. own says that this may be needed too.
func (t *Terms) ObjectCreators(namespace string) (all []Subject, own bool) {
	add := func(who Subject) {
		if who = who.inNamespace(namespace); !slices.Contains(all, who) {
			all = append(all, who)
		}
	}
	_, rest := t.Impersonate[KeyOthers]
	own = !rest && !t.OnlyNamed && namespace == t.Namespace
	for account, ns := range t.Namespaces {
		if _, ok := t.Impersonate[account]; ns == namespace && !ok && !rest {
			own = true
		}
	}
	for key, who := range t.Impersonate {
		ns, ok := t.NamespaceOf(key)
		switch {
		case strings.HasPrefix(key, KeyUser), key == KeyOthers: // in whatever account
			add(who)
		case ok && ns == namespace:
			add(who)
		}
	}
	slices.SortFunc(all, func(a, b Subject) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, own
}
