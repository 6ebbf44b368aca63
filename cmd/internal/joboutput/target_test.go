package joboutput

import (
	"testing"
)

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		s          string
		step, rank int // -1: none
		ok         bool
	}{
		{"7", -1, -1, true},
		{"7_3", -1, -1, true},
		{"7.5", -1, 5, true},
		{"7_3.0.5", 0, 5, true},
		{"", 0, 0, false},
		{".5", 0, 0, false},
		{"7.", 0, 0, false},
		{"7.-1", 0, 0, false},
		{"7.1.2.3", 0, 0, false},
	} {
		got, err := ParseTarget(c.s)
		if (err == nil) != c.ok {
			t.Errorf("%q: %v", c.s, err)
			continue
		}
		if c.ok && (deref(got.Step) != c.step || deref(got.Rank) != c.rank) {
			t.Errorf("%q: step %d, rank %d", c.s, deref(got.Step), deref(got.Rank))
		}
	}
}

func deref(n *int) int {
	if n == nil {
		return -1
	}
	return *n
}
