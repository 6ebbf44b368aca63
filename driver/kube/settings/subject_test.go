package settings_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func TestSubjects(t *testing.T) {
	for text, want := range map[string]settings.Subject{
		"user:anna":                           {Kind: "User", Name: "anna"},
		"user:system:serviceaccount:cox:main": {Kind: "ServiceAccount", Namespace: "cox", Name: "main"},
		"user:system:admin":                   {Kind: "User", Name: "system:admin"},
		"group:team:nlp":                      {Kind: "Group", Name: "team:nlp"},
		"serviceaccount:cox:main":             {Kind: "ServiceAccount", Namespace: "cox", Name: "main"},
	} {
		if got, err := settings.ParseSubject(text); err != nil || got != want {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "anna", "user:", "serviceaccount:cox", "serviceaccount:cox:", "role:a"} {
		if got, err := settings.ParseSubject(text); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
}
