package jobs

import "testing"

func TestNothingMovesTheCursor(t *testing.T) {
	for in, want := range map[string]string{
		"train":                  "train",
		"träin 日本":               "träin 日本",
		"\x1b]0;owned\a\x1b[31m": "?]0;owned??[31m",
		"a\n99\tFAKE\r":          "a 99 FAKE ",
		"\u009b31m":              "?31m",
		"\x7fé\u0085":            "?é?",
		"":                       "",
	} {
		if got := string(cleanControl([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
