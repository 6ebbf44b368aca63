package lab

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestTurns: no more have a turn than may, and the largest of those who wait is next. Seen to fail
// with a queue in which who comes first is first.
func TestTurns(t *testing.T) { synctest.Test(t, testTurns) }

func testTurns(t *testing.T) {
	q := queue{free: 2}
	end := []func(){q.takeTurn(1), q.takeTurn(0)}
	got := make(chan int)
	sizes := []int{0, 4, 1, 5}
	var all sync.WaitGroup
	for _, size := range sizes {
		all.Go(func() {
			over := q.takeTurn(size)
			got <- size
			over()
		})
		synctest.Wait() // it waits for its turn
	}
	select {
	case size := <-got:
		t.Fatalf("%d has a turn, and two others have theirs", size)
	default:
	}
	end[0]()
	var order []int
	for range sizes {
		order = append(order, <-got)
	}
	if want := []int{5, 4, 1, 0}; !slices.Equal(order, want) {
		t.Errorf("in the order %v, want %v", order, want)
	}
	end[1]()
	all.Wait()
	if q.free != 2 || len(q.waiting) != 0 {
		t.Errorf("%d are free, %d wait", q.free, len(q.waiting))
	}
}
