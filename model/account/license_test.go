package account_test

import (
	"reflect"
	"testing"

	"github.com/coxswain-sched/coxswain/model/account"
)

func TestLicensesAreReadAsSbatchWritesThem(t *testing.T) {
	for text, want := range map[string][]account.License{
		"":                nil,
		"a":               {{Name: "a", Count: 1}},
		"a:2,b":           {{Name: "a", Count: 2}, {Name: "b", Count: 1}},
		"a@server:2, a@x": {{Name: "a@server", Count: 2}, {Name: "a@x", Count: 1}},
		"a:0":             nil,
		"a=3":             {{Name: "a", Count: 3}},
		"a,b;a:2":         {{Name: "a", Count: 3}, {Name: "b", Count: 1}},
	} {
		got, err := account.ParseLicenses(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"a|b", "a:-1", "a:x", ":2", ",", "a b", "a:99999999999", "a/b"} {
		if got, err := account.ParseLicenses(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestLicenseChoicesAreThoseOfSbatch(t *testing.T) {
	for text, want := range map[string][]string{
		"":          {""},
		"a:2,b":     {"a:2,b"},
		"a|b":       {"a", "b"},
		"a:4 | b:1": {"a:4", "b:1"},
	} {
		if got, err := account.LicenseChoices(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %q (%v), want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"a,b|c", "a|", "|", "a||b", "a|b:x", "a:0|b"} {
		if got, err := account.LicenseChoices(text); err == nil {
			t.Errorf("%q is read as %q", text, got)
		}
	}
}
