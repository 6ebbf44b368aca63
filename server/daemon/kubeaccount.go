package daemon

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// readAccounts reads what jobs of accounts have of their own.
func (s *kubeSettings) readAccounts(t *settings.Terms) error {
	name := func(field, key, value string, wrong []string) error {
		switch {
		case key == "":
			return wrongKube(field, `write {"ACCOUNT": "NAME"}`, "one has no account")
		case len(wrong) > 0:
			return wrongKube(field, "write a name that kubectl get shows", "%s: %.70q: %s", key, value, settings.Misnamed(wrong))
		}
		return nil
	}
	for _, a := range slices.Sorted(maps.Keys(s.Namespaces)) {
		if err := name("namespaces", a, s.Namespaces[a], validation.IsDNS1123Label(s.Namespaces[a])); err != nil {
			return err
		}
	}
	for _, a := range slices.Sorted(maps.Keys(s.Accounts)) {
		if err := name("service_accounts", a, s.Accounts[a], validation.IsDNS1123Subdomain(s.Accounts[a])); err != nil {
			return err
		}
	}
	switch {
	case s.OnlyNamed && len(s.Namespaces) == 0:
		return wrongKube("only_named", "add namespaces, or leave it", "without namespaces every job would be refused")
	case s.Reserve && len(s.Impersonate) > 0:
		return wrongKube("impersonate", "leave one of them", "with reserve a policy refuses pods of others that bear the pool's taint, and as whom jobs are made is one of them; a policy that let these past would let them past by their own hand too")
	}
	for _, key := range slices.Sorted(maps.Keys(s.Impersonate)) {
		who, err := settings.ParseIdentity(s.Impersonate[key])
		switch {
		case key == "" || key == settings.KeyUser:
			return wrongKube("impersonate", "write an account, user:NAME, or * for all others", "one is of nobody")
		case err != nil:
			return wrongKube("impersonate", fault.Remedy(err), "%s: %w", key, err)
		case who.Kind == "ServiceAccount" && len(append(validation.IsDNS1123Subdomain(who.Name), nameSpace(who.Namespace)...)) > 0:
			return wrongKube("impersonate", "write names that kubectl get serviceaccounts --all-namespaces shows", "%s: %.100q", key, s.Impersonate[key])
		case who.Kind == "User" && strings.ContainsFunc(who.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return wrongKube("impersonate", "write the name as the API server has it", "%s: %.100q is no user", key, s.Impersonate[key])
		case !strings.HasPrefix(key, settings.KeyUser) && key != settings.KeyOthers && s.OnlyNamed && s.Namespaces[key] == "":
			return wrongKube("impersonate", "add it to namespaces, or leave it", "jobs of account %s are refused, as namespaces does not name it", key)
		}
		if t.Impersonate == nil {
			t.Impersonate = map[string]settings.Subject{}
		}
		t.Impersonate[key] = who
	}
	return nil
}

// nameSpace says what is wrong with the name of a namespace; empty is none.
func nameSpace(name string) []string {
	if name == "" {
		return nil
	}
	return validation.IsDNS1123Label(name)
}
