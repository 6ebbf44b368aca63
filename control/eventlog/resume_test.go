package eventlog_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/control/eventlog"
)

func TestALogGoesOnWhereAnotherEnded(t *testing.T) {
	l := eventlog.Resume[string](4, 10)
	if n := l.Append("a", "b"); n != 12 || l.Last() != 12 {
		t.Fatalf("the last of two changes after 10 is %d, %d", n, l.Last())
	}
	for _, c := range []struct {
		after uint64
		want  int
		gap   bool
	}{{10, 2, false}, {11, 1, false}, {9, 2, true}, {0, 2, true}} {
		got, last, gap, err := l.Next(t.Context(), c.after)
		if len(got) != c.want || gap != c.gap || last != 12 || err != nil {
			t.Errorf("after %d: %v up to %d, gap %v, %v", c.after, got, last, gap, err)
		}
	}
	l.Append("c", "d", "e")
	if got, _, gap, _ := l.Next(t.Context(), 10); !gap || len(got) != 4 || got[0] != "b" {
		t.Errorf("more than the ring holds: %v, gap %v", got, gap)
	}
}
