package control_test

import (
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// TestTheFirstTaskOfAnArrayIsNotKept any more: its number stands for the others, in memory and
// then in the store, and they are found by their indices.
//
// Seen to fail with: Find asking for the first task (no job 1_6, once none was in memory).
func TestTheFirstTaskOfAnArrayIsNotKept(t *testing.T) {
	b := &bench{t: t, hand: newHand(1, 8), store: new(store.Memory)}
	b.cfg = control.Config{Store: b.store, Pools: onHand(b.hand), Keep: time.Nanosecond, Project: time.Millisecond}
	b.open()
	defer b.close()
	spec := gang(1, 8)
	spec.Array = &job.ArraySpec{Text: "2-8:2", Indices: []uint32{2, 4, 6, 8}, Step: 2}
	first := b.submit(spec)
	left := func(id job.ID) { // memory
		b.t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); slices.Contains(b.ctl.Tasks(first), id); {
			if time.Now().After(deadline) {
				t.Fatalf("job %d is still in memory", id)
			}
			if err := b.ctl.Check(t.Context()); err != nil { // a turn of the loop
				t.Fatal(err)
			}
		}
	}
	end := func(id job.ID) {
		b.t.Helper()
		v := b.launched(id)
		b.hand.start(v)
		b.hand.end(v, engine.Exited, 0)
		left(id)
	}
	stands := func(want job.ID) {
		b.t.Helper()
		if v, err := b.ctl.TaskOf(t.Context(), first); err != nil || v.Job.ID != want || v.Job.Array.Job != first {
			t.Errorf("for the array stands %+v, %v; want job %d", v.Job, err, want)
		}
	}
	finds := func(index uint32, want job.ID) {
		b.t.Helper()
		v, err := b.ctl.Find(t.Context(), first, index)
		if want == 0 && fault.KindOf(err) != fault.NotFound || want != 0 && (err != nil || v.Job.ID != want || v.Job.Array.Index != index) {
			t.Errorf("index %d: %+v, %v; want job %d", index, v.Job, err, want)
		}
	}
	end(first)
	if _, err := b.store.Purge(t.Context(), 1, store.PurgeRequest{JobsEndedBefore: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ctl.Job(t.Context(), first); fault.KindOf(err) != fault.NotFound {
		t.Fatalf("it is kept: %v", err)
	}
	end(first + 1)
	b.launched(first + 2)
	stands(first + 2)
	finds(2, 0)
	finds(4, first+1)
	finds(8, first+3)
	end(first + 2)
	end(first + 3)
	stands(first + 3)
	finds(2, 0)
	finds(6, first+2)
	finds(7, 0)
	if _, err := b.ctl.TaskOf(t.Context(), first+2); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a task's own number is no array's: %v", err)
	}
	if _, err := b.ctl.Find(t.Context(), first+2, 4); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a task's own number is no array's: %v", err)
	}
}

// TestATaskThatLivesStandsForItsArray, where others in memory have ended.
//
// Seen to fail with: TaskOf taking the first in memory.
func TestATaskThatLivesStandsForItsArray(t *testing.T) {
	b := open(t, newHand(1, 8))
	spec := gang(1, 8)
	spec.Array = &job.ArraySpec{Text: "1-3", Indices: []uint32{1, 2, 3}}
	first := b.submit(spec)
	for i := range job.ID(3) {
		if v, err := b.ctl.TaskOf(t.Context(), first); err != nil || v.Job.ID != first+i {
			t.Errorf("after %d ends: %+v, %v", i, v.Job, err)
		}
		v := b.launched(first + i)
		b.hand.start(v)
		b.hand.end(v, engine.Exited, 0)
		b.state(first+i, job.Completed)
	}
	if v, err := b.ctl.TaskOf(t.Context(), first); err != nil || v.Job.ID != first {
		t.Errorf("after all ends: %+v, %v", v.Job, err)
	}
}
