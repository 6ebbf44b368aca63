package printable_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/model/printable"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"train":                  "train",
		"träin 日本 👩‍🚀":           "träin 日本 👩‍🚀",
		"\x1b]0;owned\a\x1b[31m": "?]0;owned??[31m",
		"a\n99\tFAKE\r":          "a 99 FAKE ",
		"\u009b31m":              "?31m",
		"\x7fé\u0085":            "?é?",
		"a\u202egnp.exe":         "a?gnp.exe",
		"\u2066x\u2069\u200f":    "?x??",
		"a\u2028b\ufeff":         "a?b?",
		"\xff\xc3":               "??",
		"":                       "",
	} {
		if got := string(printable.Clean([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
