package eventlog

import (
	"context"
	"testing"
)

// A watcher with any cursor gets, from any log, the changes after it that are kept, in
// order, and is told if there were more.
func FuzzNext(f *testing.F) {
	f.Add(uint8(4), uint64(10), uint16(7), uint64(12))
	f.Add(uint8(1), uint64(0), uint16(0), uint64(0))
	f.Add(uint8(2), uint64(1<<64-1), uint16(0), uint64(1<<64-1))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	f.Fuzz(func(t *testing.T, size uint8, resumed uint64, appended uint16, after uint64) {
		n := uint64(appended)
		if size == 0 || resumed > 1<<62 { // no journal gets there
			return
		}
		l := Resume[uint64](int(size), resumed)
		for i := range n {
			if got := l.Append(resumed + i + 1); got != resumed+i+1 {
				t.Fatalf("change %d gets number %d", resumed+i+1, got)
			}
		}
		changes, last, gap, err := l.Next(ended, after)
		if after >= resumed+n {
			if err == nil {
				t.Fatalf("after %d of %d: %v", after, resumed+n, changes)
			}
			return
		}
		first := max(after+1, resumed+1, resumed+n-min(n, uint64(size))+1)
		if err != nil || last != resumed+n || gap != (first > after+1) || uint64(len(changes)) != last-first+1 {
			t.Fatalf("after %d: %d changes up to %d, gap %v, %v; the first should be %d of %d", after, len(changes), last, gap, err, first, resumed+n)
		}
		for i, c := range changes {
			if c != first+uint64(i) {
				t.Fatalf("after %d: change %d is %d", after, first+uint64(i), c)
			}
		}
	})
}
