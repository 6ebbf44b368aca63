package preflight

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// accountsIn says whose jobs are in a namespace, where these differ.
func (l *scan) accountsIn(name string) string {
	t := &l.terms
	var all []string
	for _, a := range slices.Sorted(maps.Keys(t.Namespaces)) {
		if t.Namespaces[a] == name {
			all = append(all, a)
		}
	}
	if name == t.Namespace && !t.OnlyNamed {
		all = append(all, "all that have no other")
	}
	if len(t.Namespaces) == 0 || len(all) == 0 {
		return ""
	}
	return ", of the accounts " + strings.Join(all, ", ")
}

// checkCreators is whether those may make objects in whose names jobs are made.
func (l *scan) checkCreators(ctx context.Context, gang *gang.Gang) error {
	for _, ns := range l.terms.Spaces() {
		all, _ := l.terms.ObjectCreators(ns)
		for _, who := range all {
			way, err := l.cluster.As(who.UserName())
			if err != nil {
				return err
			}
			rights := makerRights(ns, gang, &l.terms)
			missing, err := missingRights(func(verb string, r *Right) (bool, error) { return l.isAllowed(ctx, way, verb, r) }, rights)
			if fault.KindOf(err) == fault.Permission && err != nil {
				continue // that nobody may be this one is said
			}
			if err != nil {
				l.addFailure("rights", err)
				continue
			}
			for _, i := range sortedKeys(missing) {
				l.addFinding("rights", engine.Missing, l.grantCommand(), "%s %s in namespace %s, for %s: %s", strings.Join(missing[i], ", "), rights[i].String(), ns, who.UserName(), rights[i].Why)
			}
			if len(missing) == 0 {
				l.addFinding("jobs as", engine.Found, "", "%s, who may make them in namespace %s", who.UserName(), ns)
			}
		}
	}
	return nil
}

// accountWords are the settings of accounts as the command line has them, on which rights depend.
func accountWords(t *settings.Terms) (words []string) {
	set := func(name string, v any) {
		text, _ := json.Marshal(v) // keys in order
		words = append(words, "--set "+shellQuote(name+"="+string(text)))
	}
	if len(t.Namespaces) > 0 {
		set("namespaces", t.Namespaces)
	}
	if t.OnlyNamed {
		words = append(words, "--set only_named=true")
	}
	if len(t.Impersonate) > 0 {
		as := map[string]string{}
		for key, who := range t.Impersonate {
			as[key] = who.SettingText()
		}
		set("impersonate", as)
	}
	return words
}
