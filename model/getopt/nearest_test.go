package getopt

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"gpus", "gpus", 0},
		{"gpuss", "gpus", 1},
		{"gps", "gpus", 1},
		{"gqus", "gpus", 1},
		{"gups", "gpus", 1},
		{"", "abc", 3},
		{"abc", "", 3},
		{"kitten", "sitting", 3},
		{"ab", "ba", 1},
		{strings.Repeat("x", 65), "x", 65},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
