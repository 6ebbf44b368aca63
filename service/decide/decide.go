// Package decide decides what a service does next: which replicas are submitted and which are ended,
// how far a rollout is, and how many replicas its load asks for.
//
// Decide is a function of its input. It has no clock, no I/O and no memory but what it returns; it is
// asked again after every change of a job, of an endpoint or of the load, and at Output.Next.
//
// # Model
//
// The document (model/service.Document) says what is wanted: slots, each with the index, the revision
// and the try of a replica. Jobs are what there is. A slot without a job is submitted. A living job
// without a slot is ended: to remove a slot is to ask for the end of its job. So a crash between two
// changes needs no note: the next decision finds the difference again.
//
// # Guarantees
//
//   - No decision ends a replica that is ready while that leaves fewer ready than wanted less
//     Update.Unavailable, but when the service stops or sleeps.
//   - No decision submits a job while that makes more than wanted and Update.Surge. Jobs that nobody
//     can prove running or gone are not counted; jobs that are being ended are.
//   - No two jobs that live have the same index and revision.
//   - If nothing disturbs it, the wanted replicas of one revision are ready in the end, and nothing else
//     lives.
//   - The number wanted stays within the bounds of the specification; 0 while the service sleeps.
//
// Files: decide.go has the input, the output and the order of the steps; replica.go joins slots and
// jobs; end.go follows ended programs; rollout.go leads from one revision to another; move.go replaces
// replicas that something will end; size.go adds and removes slots; scale.go follows the load; reason.go
// explains; request.go applies what people ask for to a document.
package decide

import (
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
)

// Input is all that a decision depends on. Nothing of it is written to.
type Input struct {
	Now  time.Time
	Doc  *service.Document
	Jobs []Job // with a Part of this service, that live or are remembered after their end

	Load    Load
	Refused []Refusal // submissions that control refused
	Memory  Memory    // of the last decision; zero: the first one since the server's start
}

// Job is a job that is a replica.
type Job struct {
	ID      job.ID
	Part    job.Part
	State   job.State
	Flags   job.Flags
	Attempt uint32
	Exit    job.ExitCode
	Message string // of its last attempt, or why it was ended; for people

	Submitted, Started, Ended time.Time

	Ending bool   // a record asks for its end
	Waits  string // why it waits, for people; empty: it does not, or nobody knows

	Health Health
	Probe  string // what its engine says of its health; for people

	EndsAt  time.Time // when something that is known ends it; zero: nothing
	EndsWhy string    // "its time limit", "reservation maint", "the drain of node n1"
}

// Health is whether a running replica serves.
type Health uint8

// The states of health.
const (
	Unknown Health = iota // nobody has said yet
	Unready
	Ready
)

// Refusal is a submission that control refused.
type Refusal struct {
	Part  job.Part
	Why   string
	Never bool      // it could not run even if everything were free
	Until time.Time // it is not tried again before
}

// Output is a decision. The document is made durable before anything else of it is done.
type Output struct {
	Doc    *service.Document // nil: it stays as it is
	Gone   bool              // the service has ended: its document goes
	Submit []Submission
	Cancel []Cancel
	Next   time.Time // ask again then, if nothing happens before; zero: when something happens

	Weights map[uint32]int // per cent of the requests by revision; nil: every ready replica alike
	Reasons []Reason       // what was decided last, and what is missing
	Memory  Memory
}

// Submission is a replica to submit.
type Submission struct {
	Part  job.Part
	Spare bool // in Spec.SpareQOS
}

// Cancel is a job to end, with its drain.
type Cancel struct {
	Job job.ID
	Why string // for people
}

// plan is a decision that is being made.
type plan struct {
	in  *Input
	now time.Time
	doc service.Document // a copy
	out Output

	replicas []*replica // by index and revision, as the slots
	leaving  []*Job     // living jobs without a slot
	ended    map[place]uint32
	spec     *service.Spec // of the revision that is wanted in the end
	broken   string        // why the new revision is bad, as its replicas show; empty: it is not
}

// place is where a replica is: no two live in the same one.
type place struct{ index, revision uint32 }

// Decide decides what comes next. It returns the same for the same input.
func Decide(in *Input) Output {
	p := &plan{in: in, now: in.Now, doc: copyDocument(in.Doc)}
	p.out.Memory = in.Memory.clone()
	p.spec = &p.doc.Revision(p.doc.Target()).Spec
	p.joinJobs()
	p.followEnds()
	if p.doc.Stopping {
		p.stopAll()
	} else {
		p.noteReady()
		p.advanceRollout()
		p.scale()
		p.markMoves()
		p.removeSlots()
		p.addSlots()
		p.dropRevisions()
	}
	p.submitSlots()
	p.cancelLeaving()
	p.setWeights()
	p.explain()
	p.sortSlots()
	if !sameDocument(&p.doc, in.Doc) {
		p.out.Doc = &p.doc
	}
	return p.out
}

// wakeAt asks for a decision at a time.
func (p *plan) wakeAt(t time.Time) {
	if t.After(p.now) && (p.out.Next.IsZero() || t.Before(p.out.Next)) {
		p.out.Next = t
	}
}

// stopAll removes every replica; the document goes when no job lives.
func (p *plan) stopAll() {
	for _, r := range slices.Clone(p.replicas) {
		p.removeSlot(r)
	}
	p.out.Gone = len(p.leaving) == 0
}

// submitSlots submits the slots that have no job, but those that have to wait.
func (p *plan) submitSlots() {
	surge, _ := p.allowances()
	living := p.countLiving()
	for _, r := range p.replicas {
		if r.job != nil || p.livesAt(r.place()) && !planted.PlaceTwice || living >= p.doc.Want+surge && !planted.SurgeIgnored {
			continue
		}
		if r.slot.After.After(p.now) {
			p.wakeAt(r.slot.After)
			continue
		}
		if f := p.refusal(r.part()); f != nil && f.Until.After(p.now) {
			p.wakeAt(f.Until)
			continue
		}
		p.out.Submit = append(p.out.Submit, Submission{Part: r.part(), Spare: r.slot.Spare})
		living++
	}
}

// livesAt reports whether a job that is to end lives at a place still.
func (p *plan) livesAt(at place) bool {
	return slices.ContainsFunc(p.leaving, func(j *Job) bool { return placeOf(j.Part) == at })
}

// refusal is how the submission of a part was refused; nil: it was not.
func (p *plan) refusal(part job.Part) *Refusal {
	for i := range p.in.Refused {
		if f := &p.in.Refused[i]; placeOf(f.Part) == placeOf(part) && f.Part.Try == part.Try {
			return f
		}
	}
	return nil
}

// cancelLeaving asks for the end of living jobs without a slot.
func (p *plan) cancelLeaving() {
	for _, j := range p.leaving {
		if !j.Ending {
			p.out.Cancel = append(p.out.Cancel, Cancel{Job: j.ID, Why: p.whyLeaving(j)})
		}
	}
}

func (p *plan) whyLeaving(j *Job) string {
	switch target := p.doc.Target(); {
	case p.doc.Stopping:
		return "the service was stopped"
	case j.Part.Revision != target:
		return "replaced by another revision"
	case p.doc.Want == 0:
		return "the service sleeps"
	}
	return "the service needs it no more"
}

// dropRevisions forgets the oldest revisions beyond service.MostRevisions, but those in use.
func (p *plan) dropRevisions() {
	used := usedRevisions(&p.doc)
	for _, r := range p.replicas {
		used[r.slot.Revision] = true
	}
	for i := 0; i < len(p.doc.Revisions) && len(p.doc.Revisions) > service.MostRevisions; {
		if used[p.doc.Revisions[i].Number] {
			i++
			continue
		}
		p.doc.Revisions = slices.Delete(p.doc.Revisions, i, i+1)
	}
}

// sortSlots writes the slots of the replicas into the document.
func (p *plan) sortSlots() {
	p.doc.Replicas = nil
	slices.SortFunc(p.replicas, compareReplicas)
	most := mostWhy
	if len(p.replicas) > manyReplicas {
		most = mostWhyOfMany
	}
	for _, r := range p.replicas {
		r.slot.Why = cutText(r.slot.Why, most)
		p.doc.Replicas = append(p.doc.Replicas, r.slot)
	}
	if r := p.doc.Rollout; r != nil {
		r.Why = cutText(r.Why, mostRolloutWhy)
	}
}

// How many bytes of a text for people are kept in a document, which has room for a thousand replicas.
const (
	mostWhy        = 500
	mostWhyOfMany  = 80
	manyReplicas   = 100
	mostRolloutWhy = 2000
)

// cutText cuts a text to a number of bytes at most, between letters.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

func copyDocument(d *service.Document) service.Document {
	c := *d
	c.Revisions, c.Replicas, c.StartTimes = slices.Clone(d.Revisions), slices.Clone(d.Replicas), slices.Clone(d.StartTimes)
	if d.Rollout != nil {
		r := *d.Rollout
		c.Rollout = &r
	}
	return c
}

// sameDocument compares documents. Specifications are never written, so their numbers suffice.
func sameDocument(a, b *service.Document) bool {
	numbers := func(d *service.Document) (out []uint32) {
		for i := range d.Revisions {
			out = append(out, d.Revisions[i].Number)
		}
		return out
	}
	if !slices.Equal(numbers(a), numbers(b)) || !slices.Equal(a.Replicas, b.Replicas) || !slices.Equal(a.StartTimes, b.StartTimes) || !reflect.DeepEqual(a.Rollout, b.Rollout) {
		return false
	}
	x, y := *a, *b
	for _, d := range []*service.Document{&x, &y} {
		d.Revisions, d.Replicas, d.StartTimes, d.Rollout = nil, nil, nil, nil
	}
	return reflect.DeepEqual(x, y)
}
