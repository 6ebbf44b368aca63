package rlimit

import (
	"slices"
	"strings"
	"testing"
)

// TestPropagate chooses limits as Slurm's --propagate does, and refuses names that there are not.
func TestPropagate(t *testing.T) {
	all := []Limit{{Kinds[3], 8 << 20}, {Kinds[4], 0}, {Kinds[7], 1024}, {Kinds[9], Unlimited}}
	base := []string{"A=1", "SLURM_RLIMIT_CORE=7", "B=SLURM_RLIMIT_"}
	for _, c := range []struct{ value, want string }{
		{"", "STACK=8388608 CORE=0 NOFILE=1024 AS=18446744073709551615"},
		{"all", "STACK=8388608 CORE=0 NOFILE=1024 AS=18446744073709551615"},
		{"NONE", ""},
		{"stack, RLIMIT_NOFILE", "STACK=8388608 NOFILE=1024"},
		{"RSS", ""},
	} {
		choice, err := ParsePropagate(c.value)
		if err != nil {
			t.Fatalf("%q: %v", c.value, err)
		}
		env := choice.Apply(base, all)
		var got []string
		for _, l := range OfEnvironment(env) {
			got = append(got, l.String())
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("--propagate=%s: %s, want %s", c.value, s, c.want)
		}
		if rest := Without(env); !slices.Equal(rest, []string{"A=1", "B=SLURM_RLIMIT_"}) {
			t.Errorf("--propagate=%s leaves %q", c.value, rest)
		}
	}
	for _, value := range []string{"x", "STACK,x", "ALL,STACK", "STACK,"} {
		if _, err := ParsePropagate(value); err == nil || !strings.Contains(err.Error(), "Bad rlimit name: ") {
			t.Errorf("--propagate=%s: %v", value, err)
		}
	}
	for _, text := range []string{"", "NOFILE", "NOFILE=", "NOFILE=-1", "nofile=1", "X=1", "NOFILE=99999999999999999999"} {
		if l, err := Parse(text); err == nil {
			t.Errorf("%q is read as %v", text, l)
		}
	}
}
