package kube

import (
	"fmt"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
)

// TestWhoWaitsForItsTurnCanBeStopped: it does not wait on.
//
// Seen to fail with: turnOf that does not look at wake; one that does not look at stop.
func TestWhoWaitsForItsTurnCanBeStopped(t *testing.T) {
	e := newStand(t, "n1").open(nil)
	for range makingAtMost {
		e.making <- struct{}{}
	}
	a := newAttempt(&e.cfg.Terms, engine.Ref{Allocation: 1, Attempt: 1}, &order{Job: launchOn(1, "n1").Job})
	got := make(chan bool, 1)
	go func() { got <- e.turnOf(a) }()
	a.wakeUp() // of something else
	e.mu.Lock()
	a.stop = &stopping{}
	e.mu.Unlock()
	a.wakeUp()
	select {
	case its := <-got:
		if its {
			t.Error("it has a turn, though none is left")
		}
	case <-time.After(time.Minute):
		t.Error("it waits on")
	}
	for range makingAtMost {
		<-e.making
	}
	if e.turnOf(a) || len(e.making) != 0 {
		t.Errorf("what is to end has a turn, or keeps it: %d", len(e.making))
	}
}

// TestAllHaveTheirTurn: more attempts than may be made at once. Seen to fail with: making never
// given back.
func TestAllHaveTheirTurn(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	const n = 3 * makingAtMost
	for i := range n {
		if err := e.Launch(t.Context(), launchOn(uint64(i+1), "n1")); err != nil {
			t.Fatal(err)
		}
	}
	until(t, fmt.Sprint(n, " pods are there"), func() bool { return len(s.names("pods")) == n })
}
