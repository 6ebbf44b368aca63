package eventlog

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

func TestResumeWithoutLossOrDouble(t *testing.T) {
	const n = 1000
	l := NewLog[int](n)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			var got []int
			var last uint64
			for len(got) < n {
				changes, next, gap, err := l.Next(t.Context(), last)
				if err != nil || gap {
					t.Errorf("gap %v, %v", gap, err)
					return
				}
				got, last = append(got, changes...), next
			}
			for i, v := range got {
				if v != i {
					t.Errorf("change %d is %d", i, v)
					return
				}
			}
		})
	}
	for i := range n {
		l.Append(i)
	}
	wg.Wait()
}

func TestSlowWatcherIsToldOfTheGap(t *testing.T) {
	l := NewLog[int](4)
	for i := 1; i <= 10; i++ {
		l.Append(i)
	}
	got, last, gap, err := l.Next(t.Context(), 2)
	if want := []int{7, 8, 9, 10}; !gap || last != 10 || err != nil || !slices.Equal(got, want) {
		t.Errorf("%v last %d gap %v %v", got, last, gap, err)
	}
	if got, _, gap, _ := l.Next(t.Context(), 6); gap || len(got) != 4 {
		t.Errorf("from 6: %v gap %v", got, gap)
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, last, _, err := NewLog[int](1).Next(ctx, 5); !errors.Is(err, context.Canceled) || last != 5 {
		t.Errorf("last %d, %v", last, err)
	}
}
