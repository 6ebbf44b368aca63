package sched_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/schedtest"
)

// TestWouldIsCertain: of a waiting job that asked for something else, what Would says
// is what a whole cycle does: whatever it says would start does, and most of what would
// start is found. That it was asked leaves no trace: the same events give a core that
// was never asked the same decisions.
//
// Seen to fail with: the head's reservation, the planned starts, the limits or the
// quota left out, and with the kinds of its flavours left behind.
func TestWouldIsCertain(t *testing.T) {
	would, does := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var given *account.Policy
		if rapid.Bool().Draw(t, "by right") {
			given = rules(t)
		}
		w := newWorld(t, given)
		t.Repeat(map[string]func(*rapid.T){
			"submit":          func(t *rapid.T) { w.step(t, w.submit(t)...) },
			"come in numbers": w.crowd,
			"end":             func(t *rapid.T) { w.step(t, w.release(t)...) },
			"stopped":         w.gone,
			"node":            func(t *rapid.T) { w.step(t, w.node(t)...) },
			"time": func(t *rapid.T) {
				w.now += sched.Instant(rapid.IntRange(1, 5).Draw(t, "seconds")) * sched.Instant(time.Second)
				w.step(t)
			},
			"instead": func(t *rapid.T) { w.instead(t, &would, &does) },
		})
		w.replay(t)
	})
	t.Logf("%d of %d changes that start a job were found", would, does)
	if does < 100 || would*10 < does*7 {
		t.Errorf("%d of %d changes that start a job were found, expected seven of ten, and a hundred to be there", would, does)
	}
}

// instead asks of a waiting job what would become of it if it asked for something else.
func (w *world) instead(t *rapid.T, would, does *int) {
	id, ok := some(t, w.queue, "job")
	if !ok || w.queue[id].blocked {
		return
	}
	if is, slow := w.core.Lacks(id); !cmp.Equal(is, slow) {
		t.Fatalf("job %d lacks %+v, and place.Now says otherwise (-is +slow):\n%s", id, is, cmp.Diff(is, slow))
	}
	for range 3 {
		w.ask(t, id, would, does)
	}
}

func (w *world) ask(t *rapid.T, id job.ID, would, does *int) {
	next := w.queue[id].Submitted
	spec := *schedtest.Spec(t)
	old := next.Spec
	spec.Owner, spec.Account, spec.QOS, spec.Reservation, spec.Licenses = old.Owner, old.Account, old.QOS, old.Reservation, old.Licenses
	said := w.core.DryRun(w.now, id, &spec)
	next.Spec = &spec
	starts := false
	for _, d := range sched.Load(w.core.Snapshot().Sort()).Step(w.now, next) {
		if d, ok := d.(sched.Start); ok && d.Job == id {
			starts = true
		}
	}
	if said && !starts {
		t.Fatalf("job %d would start, it was said, and a pass does not start it", id)
	}
	if starts {
		*does++
		if said {
			*would++
		}
	}
	if err := w.core.Check(); err != nil {
		t.Fatalf("after it was asked: %v", err)
	}
}
