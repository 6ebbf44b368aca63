package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/service"
)

// update is a specification with a way to be updated.
func update(tag string, replicas int, u service.Update) *service.Spec {
	s := specOf(tag, replicas)
	s.Update = u
	return s
}

// watch goes on until something is so, and returns the fewest that were ready and the most that lived.
func (w *world) watch(d time.Duration, until func() bool) (fewest, most int) {
	w.t.Helper()
	fewest = 1000
	w.run(d, func() bool {
		fewest, most = min(fewest, w.ready(0)), max(most, len(w.living()))
		return until()
	})
	return fewest, most
}

// TestUpdates: how many serve and how many live during an update is what its specification says.
//
// Seen to fail with: an update in place that keeps the surge of 1 (allowances).
func TestUpdates(t *testing.T) {
	for name, c := range map[string]struct {
		update       service.Update
		drain        time.Duration
		fewest, most int
	}{
		"rolling with a surge of one":   {service.Update{Surge: 1}, 3 * time.Second, 4, 5},
		"rolling with a surge of two":   {service.Update{Surge: 2}, 0, 4, 6},
		"rolling with one unavailable":  {service.Update{Unavailable: 1}, 0, 3, 4},
		"rolling with both":             {service.Update{Surge: 1, Unavailable: 1}, 0, 3, 5},
		"in place":                      {service.Update{InPlace: true}, 4 * time.Second, 3, 4},
		"in place, two at a time":       {service.Update{InPlace: true, Unavailable: 2}, 0, 2, 4},
		"in place outranks the surge":   {service.Update{InPlace: true, Surge: 3}, 0, 3, 4},
		"neither surge nor unavailable": {service.Update{}, 0, 4, 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, update("a", 4, c.update))
			w.drain = c.drain
			if did := w.submit(update("b", 4, c.update)); did != (Submitted{Revision: 2, New: true}) {
				t.Fatalf("%+v", did)
			}
			fewest, most := w.watch(5*time.Minute, w.settled)
			if fewest != c.fewest || most != c.most {
				t.Errorf("at least %d ready and at most %d alive, not %d and %d", fewest, most, c.fewest, c.most)
			}
			if w.doc.Current != 2 || w.doc.Rollout.Phase != service.Done {
				t.Errorf("revision %d, rollout %+v", w.doc.Current, w.doc.Rollout)
			}
		})
	}
}

// TestBadRevision: a bad image, a crash loop and one that is never ready stop the rollout; it is undone,
// and the old revision serves on.
//
// Seen to fail with: findFailure that looks at one of the three less.
func TestBadRevision(t *testing.T) {
	for name, c := range map[string]struct {
		bad    badness
		update service.Update
		within time.Duration
		fewest int
		why    string
	}{
		"bad image":           {noImage, service.Update{Surge: 1}, 10 * time.Second, 3, "could not be started 3 times: no image of that name"},
		"crash loop":          {crashes, service.Update{Surge: 1}, 20 * time.Second, 3, "ended 3 times in a row: its program ended with exit 1"},
		"crash loop in place": {crashes, service.Update{InPlace: true}, 20 * time.Second, 2, "ended 3 times in a row"},
		"never ready":         {neverUp, service.Update{Surge: 1, Timeout: 30 * time.Second}, 35 * time.Second, 3, "no progress for 30s: replica 0 is not ready"},
		"a canary fades":      {fadesAway, service.Update{Surge: 1, Canary: []int{10}, Step: time.Minute}, 15 * time.Second, 2, "of the canary is not ready any more"},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, update("a", 3, c.update))
			w.bad[2] = c.bad
			w.submit(update("b", 3, c.update))
			fewest, _ := w.watch(c.within, func() bool { return w.doc.Rollout.Phase != service.Rolling })
			if r := w.doc.Rollout; r.Phase != service.Undoing && r.Phase != service.Undone || !strings.Contains(r.Why, c.why) {
				t.Errorf("rollout %+v", r)
			}
			less, _ := w.watch(time.Minute, w.settled)
			if fewest = min(fewest, less); fewest != c.fewest {
				t.Errorf("%d were ready at least, not %d", fewest, c.fewest)
			}
			if w.doc.Current != 1 || w.ready(1) != 3 || w.doc.Rollout.Phase != service.Undone {
				t.Errorf("revision %d, %d ready, rollout %+v", w.doc.Current, w.ready(1), w.doc.Rollout)
			}
			w.says(Rollout, "revision 2 failed and was undone", c.why)
			// The same bad specification again is a new revision: somebody may have put the image there.
			if did := w.submit(update("b", 3, c.update)); did.Revision != 3 || !did.New {
				t.Errorf("submitted again: %+v", did)
			}
		})
	}
}

// TestOldRevisionStays: old replicas whose probes fail for now are not given up for new ones that were
// never ready.
//
// Seen to fail with: removeSlots that takes every replica that is not ready.
func TestOldRevisionStays(t *testing.T) {
	w := begin(t, specOf("a", 3))
	w.at(0, 1).flap, w.at(1, 1).flap = true, true
	w.bad[2] = neverUp
	w.submit(specOf("b", 3))
	for range 20 {
		w.step()
	}
	w.at(0, 1).flap, w.at(1, 1).flap = false, false
	w.step()
	w.step()
	if n := w.ready(1); n != 3 {
		t.Errorf("%d of the old revision are ready", n)
	}
}

// TestRefusedRevision: more than the fleet holds fails the rollout at once.
func TestRefusedRevision(t *testing.T) {
	w := begin(t, specOf("a", 2))
	w.refused[2] = "the largest node has 4 GPUs"
	w.submit(specOf("b", 2))
	w.run(5*time.Second, w.settled)
	w.says(Rollout, "undone", "the largest node has 4 GPUs")
}

// TestWaitingIsNoFailure: a full cluster says nothing of a revision.
//
// Seen to fail with: findFailure that counts the time of pending replicas.
func TestWaitingIsNoFailure(t *testing.T) {
	w := begin(t, update("a", 2, service.Update{Surge: 1, Timeout: 10 * time.Second}))
	w.room = 2
	w.submit(update("b", 2, service.Update{Surge: 1, Timeout: 10 * time.Second}))
	for range 100 {
		w.step()
	}
	if w.doc.Rollout.Phase != service.Rolling || w.ready(1) != 2 {
		t.Fatalf("rollout %+v", w.doc.Rollout)
	}
	w.says(Waits, "replica 0 (job 3) has not started")
	w.room = 3
	w.run(time.Minute, w.settled)
}

// TestHalted: a rollout that is not to be undone by itself stops where it is; a person undoes or
// resumes it.
func TestHalted(t *testing.T) {
	u := service.Update{Surge: 1, ManualUndo: true}
	w := begin(t, update("a", 2, u))
	w.bad[2] = crashes
	w.submit(update("b", 2, u))
	w.run(time.Minute, func() bool { return w.doc.Rollout.Phase == service.Halted })
	for range 30 {
		w.step()
	}
	if w.ready(1) != 2 || w.doc.Rollout.Phase != service.Halted {
		t.Fatalf("%d ready, rollout %+v", w.ready(1), w.doc.Rollout)
	}
	w.says(Rollout, "revision 2 failed", "Undo it, resume it or submit another revision")
	w.bad[2] = good
	doc, err := Resume(w.doc, w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.doc = doc
	w.run(time.Minute, w.settled)
	if w.doc.Current != 2 {
		t.Errorf("revision %d serves", w.doc.Current)
	}
}

// TestCanary: the new revision gets its share of the requests step by step.
//
// Seen to fail with: canaryShare that knows no step but the first.
func TestCanary(t *testing.T) {
	u := service.Update{Surge: 1, Canary: []int{10, 50}, Step: 30 * time.Second}
	w := begin(t, update("a", 4, u))
	w.submit(update("b", 4, u))
	w.run(time.Minute, func() bool { return w.last.Weights[2] == 10 })
	at := w.now
	if w.ready(2) != 1 {
		t.Errorf("%d replicas at 10 %%", w.ready(2))
	}
	w.says(Rollout, "canary with 10 % of the requests, step 1 of 2")
	w.run(time.Minute, func() bool { return w.doc.Rollout.Step == 1 })
	if d := w.now.Sub(at); d < 29*time.Second || d > 32*time.Second {
		t.Errorf("the first step lasted %s", d)
	}
	fewest, most := w.watch(time.Minute, func() bool { return w.last.Weights[2] == 50 })
	if w.ready(2) != 2 || w.ready(1) < 2 || fewest < 4 || most > 5 {
		t.Errorf("%d and %d replicas at 50 %%, at least %d, at most %d", w.ready(1), w.ready(2), fewest, most)
	}
	w.run(3*time.Minute, w.settled)
	if w.last.Weights != nil || w.doc.Current != 2 {
		t.Errorf("weights %v, revision %d", w.last.Weights, w.doc.Current)
	}
}

// TestPauseResumeUndo: a paused rollout stays as it is and an undone one goes back.
func TestPauseResumeUndo(t *testing.T) {
	w := begin(t, specOf("a", 4))
	w.submit(specOf("b", 4))
	w.run(time.Minute, func() bool { return w.ready(2) == 2 })
	w.apply(Pause(w.doc, w.now))
	for range 30 {
		w.step()
	}
	if w.ready(2) < 2 || w.ready(2) > 3 || w.ready(1) < 1 {
		t.Errorf("%d and %d ready", w.ready(1), w.ready(2))
	}
	w.says(Rollout, "the rollout of revision 2 is paused")
	w.apply(Resume(w.doc, w.now))
	w.run(time.Minute, func() bool { return w.ready(2) == 3 })
	doc, did, err := Undo(w.doc, 0, "anna", w.now)
	if err != nil || did != (Submitted{Revision: 1}) {
		t.Fatalf("%+v, %v", did, err)
	}
	w.apply(doc, err)
	if fewest, _ := w.watch(time.Minute, w.settled); fewest < 4 || w.doc.Current != 1 {
		t.Errorf("at least %d ready, revision %d", fewest, w.doc.Current)
	}
	if _, err := Pause(w.doc, w.now); err == nil || !strings.Contains(err.Error(), "no rollout is under way: revision 1 serves") {
		t.Errorf("pause without a rollout: %v", err)
	}
}

func (w *world) apply(d *service.Document, err error) {
	w.t.Helper()
	if err != nil || d == nil {
		w.fatalf("%v, %v", d, err)
	}
	w.doc = d
}

// TestUndoToAnyRevision: an undo to a revision that is kept is a new revision with its specification.
func TestUndoToAnyRevision(t *testing.T) {
	w := begin(t, specOf("a", 1))
	for _, tag := range []string{"b", "c"} {
		w.submit(specOf(tag, 1))
		w.run(time.Minute, w.settled)
	}
	doc, did, err := Undo(w.doc, 1, "anna", w.now)
	if err != nil || did != (Submitted{Revision: 4, New: true}) {
		t.Fatalf("%+v, %v", did, err)
	}
	w.apply(doc, err)
	w.run(time.Minute, w.settled)
	if r := w.doc.Revision(4); r.Spec.Job.Comment != "a" || r.Note != "undo to revision 1" {
		t.Errorf("%+v", r)
	}
	for to, text := range map[uint32]string{4: "wanted already", 9: "there is no revision 9; the service keeps 1, 2, 3, 4"} {
		if _, _, err := Undo(w.doc, to, "anna", w.now); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("undo to %d: %v", to, err)
		}
	}
	doc, did, err = Undo(w.doc, 0, "anna", w.now) // the one before is 3
	if err != nil || did.Revision != 5 || doc.Revision(5).Spec.Job.Comment != "c" {
		t.Errorf("%+v, %v", did, err)
	}
}

// TestSubmissionDuringARollout starts from what serves.
func TestSubmissionDuringARollout(t *testing.T) {
	w := begin(t, specOf("a", 3))
	w.bad[2] = neverUp
	w.submit(specOf("b", 3))
	w.run(time.Minute, func() bool { return len(w.living()) == 4 })
	w.submit(specOf("c", 3))
	if r := w.doc.Rollout; r.From != 1 || r.To != 3 {
		t.Errorf("rollout %+v", r)
	}
	if fewest, most := w.watch(time.Minute, w.settled); fewest != 3 || most != 4 || w.doc.Current != 3 {
		t.Errorf("at least %d ready, at most %d alive, revision %d", fewest, most, w.doc.Current)
	}
}

// TestSameSpecification: the same again changes nothing; one that concerns no replica replaces none.
func TestSameSpecification(t *testing.T) {
	w := begin(t, specOf("a", 2))
	again := specOf("a", 2)
	again.Text, again.Env = "other comments", []string{"SSH_TTY=/dev/pts/3"}
	again.Job.Source.Host = "elsewhere"
	if did := w.submit(again); did != (Submitted{Revision: 1}) {
		t.Errorf("%+v", did)
	}
	more := specOf("a", 3)
	more.Route.Host = "chat.example.org"
	if did := w.submit(more); did != (Submitted{Revision: 1, Changed: true}) {
		t.Errorf("%+v", did)
	}
	w.run(time.Minute, w.settled)
	if len(w.jobs) != 3 || w.doc.Want != 3 {
		t.Errorf("%d jobs, %d wanted", len(w.jobs), w.doc.Want)
	}
}

// TestRevisionsAreBounded: the oldest go, and those in use stay.
func TestRevisionsAreBounded(t *testing.T) {
	w := begin(t, specOf("0", 1))
	for i := range 15 {
		w.submit(specOf(strings.Repeat("x", i+1), 1))
		w.run(time.Minute, w.settled)
	}
	if n := len(w.doc.Revisions); n != service.MostRevisions || w.doc.Revision(16) == nil || w.doc.Revision(15) == nil {
		t.Errorf("%d revisions", n)
	}
}
