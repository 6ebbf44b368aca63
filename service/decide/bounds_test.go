package decide

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
)

// controlTakes is how large a document control takes.
const controlTakes = 4 << 20

// large is a specification with a script of so many bytes.
func large(tag string, replicas, bytes int) *service.Spec {
	s := update(tag, replicas, service.Update{Surge: 1})
	s.Script = []byte(strings.Repeat(tag, bytes))
	return s
}

// TestLargeSpecification: it is refused when it is submitted, not when its replicas are.
//
// Seen to fail with: Submit without the bound.
func TestLargeSpecification(t *testing.T) {
	_, _, err := Submit(nil, large("a", 1, 900_000), "anna", "", epoch)
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "are 1.1 MiB in all, and a service may have 1.0 MiB") || fault.Remedy(err) == "" {
		t.Errorf("%v", err)
	}
}

// TestManyLargeRevisions: ten revisions of 0.8 MiB, and a thousand replicas that ended for a long
// reason, have room in a document, the oldest revisions forgotten; three in use and a fourth are refused.
//
// Seen to fail with: dropLarge that drops nothing; sortSlots without cutText.
func TestManyLargeRevisions(t *testing.T) {
	w := begin(t, large("a", 2, 600_000))
	for _, tag := range strings.Split("bcdefghij", "") {
		w.submit(large(tag, 2, 600_000))
		w.watch(5*time.Minute, w.settled)
	}
	if w.doc.Current != 10 || w.doc.Revision(9) == nil || len(w.doc.Revisions) > 4 {
		t.Errorf("revision %d of %d kept", w.doc.Current, len(w.doc.Revisions))
	}
	in := &Input{Now: w.now, Doc: w.doc}
	many := copyDocument(w.doc)
	many.Want = service.MostReplicas
	many.Revisions[len(many.Revisions)-1].Spec.Replicas = service.Bounds{Min: many.Want, Max: many.Want}
	many.Replicas = nil
	for i := range uint32(service.MostReplicas) {
		many.Replicas = append(many.Replicas, service.Slot{Index: i, Revision: 10})
		in.Jobs = append(in.Jobs, Job{ID: job.ID(i + 1), Part: job.Part{Index: i, Revision: 10}, State: job.Failed, Ended: w.now, Message: strings.Repeat("<ö>", 10_000)})
	}
	in.Doc = &many
	out := Decide(in)
	text, err := json.Marshal(out.Doc)
	if err != nil || len(text) > controlTakes || !utf8.ValidString(out.Doc.Replicas[0].Why) || out.Doc.Replicas[999].Failed != 1 {
		t.Errorf("a document of %d bytes, %v, %.200s", len(text), err, out.Doc.Replicas[0].Why)
	}

	full := copyDocument(w.doc)
	for i := range full.Revisions {
		full.Replicas = append(full.Replicas, service.Slot{Index: 9, Revision: full.Revisions[i].Number})
	}
	if _, _, err := Submit(&full, large("z", 2, 780_000), "anna", "", w.now); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "revisions whose replicas live have") {
		t.Errorf("one more: %v", err)
	}
}
