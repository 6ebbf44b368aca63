package decide

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
)

// world is a control plane and an engine in memory, as simple as they can be: jobs start when there is
// room, serve when they have started up, and end when they are told to.
type world struct {
	t    testing.TB
	now  time.Time
	doc  *service.Document
	jobs []*fakeJob
	last Output
	mem  Memory
	load Load

	room    int                  // jobs that can run at once
	start   time.Duration        // until a replica is ready
	drain   time.Duration        // until one that is to end has ended
	bad     map[uint32]badness   // by revision
	refused map[uint32]string    // submissions of a revision that are refused
	refuse  map[job.Part]Refusal // that were
	log     []string             // what happened, for failures
}

// badness is what is wrong with a revision.
type badness int

const (
	good      badness = iota
	crashes           // its program ends at once
	neverUp           // it runs and is never ready
	noImage           // it cannot be started
	fadesAway         // it is ready for 5 s, and then not any more
)

type fakeJob struct {
	Job
	unknown bool // nobody has said whether it is ready
	ends    time.Time
	flap    bool // its probe fails for now
}

var epoch = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func newWorld(t testing.TB) *world {
	return &world{
		t: t, now: epoch, room: 1000, start: 2 * time.Second, bad: map[uint32]badness{}, refused: map[uint32]string{},
		refuse: map[job.Part]Refusal{}, load: Load{Known: true, Since: epoch},
	}
}

// specOf is a specification whose replicas differ by their tag.
func specOf(tag string, replicas int) *service.Spec {
	return &service.Spec{
		Name: "chat", Job: job.Spec{Name: "chat", Comment: tag, Serve: &job.Serve{Ports: []job.Port{{Name: "http"}}}}, Replicas: service.Bounds{Min: replicas, Max: replicas},
		Update: service.Update{Surge: 1},
	}
}

func (w *world) logf(format string, args ...any) {
	w.log = append(w.log, w.now.Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	for _, l := range w.log[max(0, len(w.log)-60):] {
		w.t.Log(l)
	}
	w.t.Fatalf("%s "+format, append([]any{w.now.Format("15:04:05.000")}, args...)...)
}

// submit gives the service a specification.
func (w *world) submit(s *service.Spec) Submitted {
	w.t.Helper()
	d, did, err := Submit(w.doc, s, "anna", "", w.now)
	if err != nil {
		w.fatalf("submit: %v", err)
	}
	if d != nil {
		w.doc = d
	}
	w.logf("submitted: %+v", did)
	return did
}

func (w *world) living() (out []*fakeJob) {
	for _, j := range w.jobs {
		if !j.State.Final() {
			out = append(out, j)
		}
	}
	return out
}

// serves reports whether a job serves in truth.
func serves(j *fakeJob) bool {
	return j.State == job.Running && j.Health == Ready && !j.Ending && j.Flags&job.Uncertain == 0
}

func (w *world) ready(revision uint32) (n int) {
	for _, j := range w.jobs {
		if serves(j) && (revision == 0 || j.Part.Revision == revision) {
			n++
		}
	}
	return n
}

func (w *world) input() *Input {
	in := &Input{Now: w.now, Doc: w.doc, Load: w.load, Memory: w.mem}
	for _, j := range w.jobs {
		seen := j.Job
		if j.unknown && seen.State == job.Running {
			seen.Health = Unknown
		}
		in.Jobs = append(in.Jobs, seen)
	}
	for _, r := range w.refuse {
		in.Refused = append(in.Refused, r)
	}
	slices.SortFunc(in.Refused, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(a.Part.Index, b.Part.Index), cmp.Compare(a.Part.Revision, b.Part.Revision), cmp.Compare(a.Part.Try, b.Part.Try))
	})
	return in
}

// decide asks for a decision, checks it, and carries out the first changes of it, at most: -1 is all.
// The server ends after them.
func (w *world) decide(most int) {
	w.t.Helper()
	in := w.input()
	out := Decide(in)
	w.check(in, &out)
	changes := 0
	allowed := func() bool { changes++; return most < 0 || changes <= most }
	if out.Doc != nil {
		if !allowed() {
			return
		}
		w.doc = out.Doc
	}
	for _, x := range out.Cancel {
		if allowed() {
			w.cancel(x)
		}
	}
	for _, s := range out.Submit {
		if allowed() {
			w.submitPart(s)
		}
	}
	w.last, w.mem = out, out.Memory
}

func (w *world) cancel(x Cancel) {
	for _, j := range w.jobs {
		if j.ID != x.Job || j.State.Final() {
			continue
		}
		w.logf("cancel job %d %v: %s", j.ID, placeOf(j.Part), x.Why)
		if j.State == job.Pending {
			j.State, j.Ended = job.Cancelled, w.now
			continue
		}
		j.Ending, j.Message, j.ends = true, x.Why, w.now.Add(w.drain)
	}
}

func (w *world) submitPart(s Submission) {
	if why := w.refused[s.Part.Revision]; why != "" {
		w.refuse[s.Part] = Refusal{Part: s.Part, Why: why, Never: true, Until: w.now.Add(15 * time.Second)}
		return
	}
	for _, j := range w.jobs {
		if j.Part == s.Part {
			if j.State.Final() {
				w.fatalf("part %+v was submitted anew after its end", s.Part)
			}
			return
		}
	}
	j := &fakeJob{Job: Job{ID: job.ID(len(w.jobs) + 1), Part: s.Part, State: job.Pending, Submitted: w.now, Waits: "4 jobs before it"}}
	w.logf("submit job %d %v try %d spare %v", j.ID, placeOf(s.Part), s.Part.Try, s.Spare)
	w.jobs = append(w.jobs, j)
}

func hasSlot(d *service.Document, part job.Part) bool {
	return slices.ContainsFunc(d.Replicas, func(s service.Slot) bool {
		return s.Index == part.Index && s.Revision == part.Revision && s.Try == part.Try
	})
}

// check holds the invariants of one decision.
func (w *world) check(in *Input, out *Output) {
	w.t.Helper()
	d := in.Doc
	if out.Doc != nil {
		d = out.Doc
	}
	spec := &d.Revision(d.Target()).Spec
	surge, unavailable := spec.Update.Surge, spec.Update.Unavailable
	switch {
	case spec.Update.InPlace:
		surge, unavailable = 0, max(unavailable, 1)
	case surge+unavailable == 0:
		surge = 1
	}
	cancelled := map[job.ID]bool{}
	for _, x := range out.Cancel {
		if cancelled[x.Job] {
			w.fatalf("job %d is cancelled twice", x.Job)
		}
		cancelled[x.Job] = true
	}
	ready, lost, living := 0, 0, 0
	lives := map[place]job.ID{}
	for _, j := range w.living() {
		switch {
		case serves(j) && cancelled[j.ID]:
			if hasSlot(in.Doc, j.Part) { // else an earlier decision ended it, and the server ended before its job did
				lost++
			}
		case serves(j):
			ready++
		}
		if j.Flags&job.Uncertain == 0 && (!cancelled[j.ID] || j.State != job.Pending) {
			living++
		}
		if other := lives[placeOf(j.Part)]; other != 0 {
			w.fatalf("jobs %d and %d are both at %+v", other, j.ID, placeOf(j.Part))
		}
		lives[placeOf(j.Part)] = j.ID
	}
	if lost > 0 && ready < d.Want-unavailable && !d.Stopping && d.Want > 0 {
		w.fatalf("%d ready replicas are ended and %d stay, of %d wanted and %d fewer allowed", lost, ready, d.Want, unavailable)
	}
	if n := living + len(out.Submit); len(out.Submit) > 0 && n > d.Want+surge {
		w.fatalf("%d replicas with those that are submitted, of %d wanted and %d more allowed", n, d.Want, surge)
	}
	for _, s := range out.Submit {
		if other := lives[placeOf(s.Part)]; other != 0 {
			w.fatalf("%+v is submitted while job %d lives there", s.Part, other)
		}
		lives[placeOf(s.Part)] = 1 << 60
		if d.Stopping {
			w.fatalf("%+v is submitted while the service stops", s.Part)
		}
	}
	if b := spec.Replicas; b.Min < b.Max && !d.Stopping {
		asleep := d.Want == 0 && spec.Scale != nil && spec.Scale.ToZero > 0
		if (d.Want < b.Min || d.Want > b.Max) && !asleep && out.Doc != nil {
			w.fatalf("%d replicas wanted, of %d to %d", d.Want, b.Min, b.Max)
		}
	}
	added, slots := false, 0
	for _, s := range d.Replicas {
		slots++
		for _, j := range w.living() {
			if placeOf(j.Part) == (place{s.Index, s.Revision}) && j.Flags&job.Uncertain != 0 {
				slots--
			}
		}
		added = added || !slices.ContainsFunc(in.Doc.Replicas, func(o service.Slot) bool { return o.Index == s.Index && o.Revision == s.Revision })
	}
	if added && slots > d.Want+surge {
		w.fatalf("a slot is added to %d, of %d wanted and %d more allowed", slots-1, d.Want, surge)
	}
	sum := 0
	for _, share := range out.Weights {
		sum += share
	}
	if len(out.Weights) > 0 && sum != 100 {
		w.fatalf("weights %v", out.Weights)
	}
	for i, a := range d.Replicas {
		for _, b := range d.Replicas[i+1:] {
			if a.Index == b.Index && a.Revision == b.Revision {
				w.fatalf("two slots at %d of revision %d", a.Index, a.Revision)
			}
		}
	}
	if again := Decide(in); fmt.Sprint(again.Cancel, again.Submit, again.Reasons) != fmt.Sprint(out.Cancel, out.Submit, out.Reasons) {
		w.fatalf("the same input is decided otherwise: %v and %v", again, *out)
	}
}

// pass lets time go by: jobs start, get ready and end.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	running := 0
	for _, j := range w.living() {
		if j.State == job.Running {
			running++
		}
	}
	for _, j := range w.living() {
		bad := w.bad[j.Part.Revision]
		switch {
		case j.Flags&job.Uncertain != 0:
		case j.State == job.Pending && running < w.room:
			running++
			j.Attempt++
			if bad == noImage {
				j.Flags |= job.LaunchFailed | job.Requeued
				if j.Message = "no image of that name"; j.Attempt >= 5 {
					j.Flags |= job.Held | job.HeldFailed
				}
				continue
			}
			j.State, j.Started, j.Health, j.Flags, j.unknown = job.Running, w.now, Unready, 0, false
		case j.Ending && !j.ends.After(w.now):
			j.State, j.Ended, j.Health = job.Cancelled, w.now, Unready
		case j.State == job.Running && bad == crashes && !j.Ending:
			w.crash(j)
		case j.State == job.Running && !j.EndsAt.IsZero() && !j.EndsAt.After(w.now):
			j.State, j.Ended, j.Health = job.Timeout, w.now, Unready
		case j.State == job.Running:
			up := w.now.Sub(j.Started)
			ok := up >= w.start && bad != neverUp && !j.flap && (bad != fadesAway || up < w.start+5*time.Second)
			if j.Health = Unready; ok {
				j.Health = Ready
			}
		}
	}
}

func (w *world) crash(j *fakeJob) {
	w.logf("job %d crashes", j.ID)
	j.State, j.Ended, j.Exit, j.Health = job.Failed, w.now, job.ExitCode{Status: 1}, Unready
}

// decideAll decides until nothing changes in the document, as the controller does.
func (w *world) decideAll() {
	w.t.Helper()
	for n := 0; ; n++ {
		before := w.doc
		w.decide(-1)
		switch {
		case w.doc == before:
			return
		case n == 8:
			w.fatalf("the document changes again and again: %+v", w.doc.Replicas)
		}
	}
}

// step is a decision, and the time until the next one or at most a second.
func (w *world) step() {
	w.t.Helper()
	w.decideAll()
	d := time.Second
	if next := w.last.Next; !next.IsZero() && next.After(w.now) {
		d = min(d, next.Sub(w.now))
	}
	w.pass(max(d, 10*time.Millisecond))
}

// run goes on until something is so, for at most d.
func (w *world) run(d time.Duration, until func() bool) {
	w.t.Helper()
	for end := w.now.Add(d); !until(); {
		if w.now.After(end) {
			w.fatalf("it is not so after %s: %d wanted, %d ready, rollout %+v, slots %+v, reasons %v", d, w.doc.Want, w.ready(0), w.doc.Rollout, w.doc.Replicas, w.last.Reasons)
		}
		w.step()
	}
}

// settled reports whether what is wanted is there, of one revision, and nothing else.
func (w *world) settled() bool {
	r := w.doc.Rollout
	over := r == nil || r.Phase == service.Done || r.Phase == service.Undone
	return over && w.ready(w.doc.Target()) == w.doc.Want && len(w.living()) == w.doc.Want && len(w.doc.Replicas) == w.doc.Want
}

// begin makes a service that serves.
func begin(t testing.TB, s *service.Spec) *world {
	t.Helper()
	w := newWorld(t)
	w.submit(s)
	w.run(time.Minute, w.settled)
	return w
}
