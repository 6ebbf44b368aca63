package sched_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/schedtest"
)

// TestLawsWithPreemption is TestLaws on a site whose jobs may take each other's place,
// by QOS, partition or priority, and checks besides that
//
//   - nobody is taken who is not outranked, who has not run for the exempt time, or
//     who is being ended already;
//   - the job for which somebody has to go would fit then, and would not without any
//     one of them, by exhaustive search over the book;
//   - what is taken stays held until it is Released, and what is freed goes to the job
//     for which it was freed;
//   - once all of those have gone, everybody who was waiting for them has started, or
//     has lost it to a job of higher order or to the loss of a node;
//   - with nothing new arriving, preemption comes to an end, victims being queued again.
//
// Seen to fail with: nominate not holding, board starting without looking at await,
// exempt times ignored, generation not raised by holdRun, circles of QOS left in, lifted rows
// not put back. Not seen to find: overtake, yield or the second rouse left out.
func TestLawsWithPreemption(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rules(t))
		w.anything(t)
		w.quiet(t)
	})
}

// rules draws who may take whose place.
func rules(t *rapid.T) *account.Policy {
	by := rapid.SampledFrom([][]string{{"qos"}, {"qos"}, {"partition"}, {"priority"}, {"qos", "priority"}, {"qos", "partition"}}).Draw(t, "by")
	p := &account.Policy{
		QOS:        []account.QOS{{Name: "hi", Priority: 2, Preempts: []string{"mid", "lo"}}, {Name: "mid", Priority: 1, Preempts: []string{"lo", "hi"}[:1]}, {Name: "lo"}},
		Partitions: []account.Partition{{Name: "p", Tier: 1}, {Name: "q", Tier: 2}},
		Preemption: account.Preemption{By: by, Exempt: account.Duration(rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "exempt")) * account.Duration(time.Second)},
	}
	if rapid.IntRange(0, 3).Draw(t, "circle") == 0 {
		p.QOS[2].Preempts = []string{"mid"} // and mid takes from lo: neither does
	}
	p.Reservations = reservations(t)
	p.Backfill.Reservations = rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "reservations")
	if rapid.IntRange(0, 2).Draw(t, "suspends") == 0 {
		p.Preemption.Mode = account.PreemptSuspend
	}
	if rapid.IntRange(0, 3).Draw(t, "protected") == 0 {
		p.QOS[1].PreemptMode = account.PreemptOff
	}
	return p
}

// rank draws what decides who may take whose place.
func (w *world) rank(t *rapid.T, s *job.Spec) {
	if w.rules == nil {
		return
	}
	if w.rules.Preemption.Defrag != "" && rapid.IntRange(0, 9).Draw(t, "pieces") > 0 {
		pieces(t, s)
		return
	}
	if rapid.IntRange(0, 4).Draw(t, "contends") > 0 { // for what all nodes have
		g := job.TaskGroup{Tasks: job.Count{Want: rapid.IntRange(1, 3).Draw(t, "tasks")}}
		g.PerTask.CPU = resource.CPUs(rapid.IntRange(1, 3).Draw(t, "cpus per task"))
		if rapid.IntRange(0, 2).Draw(t, "apart") == 0 {
			g.Nodes = job.Range{Min: g.Tasks.Want, Max: g.Tasks.Want}
		}
		s.Groups = []job.TaskGroup{g}
	}
	s.QOS = rapid.SampledFrom([]string{"lo", "lo", "mid", "hi", "hi"}).Draw(t, "qos")
	s.Requeue = rapid.Bool().Draw(t, "requeue")
}

func (w *world) tier(s *job.Spec) int32 {
	if w.rules != nil && len(s.Partitions) > 0 {
		for _, p := range w.rules.Partitions {
			if p.Name == s.Partitions[0] {
				return p.Tier
			}
		}
	}
	return 0
}

// outranks is who may take whose place, written from the meaning of the rules.
func (w *world) outranks(a *job.Spec, prio int64, b *job.Spec, other int64) bool {
	for _, by := range w.rules.Preemption.By {
		switch by {
		case "qos":
			i := slices.IndexFunc(w.rules.QOS, func(q account.QOS) bool { return q.Name == a.QOS })
			j := slices.IndexFunc(w.rules.QOS, func(q account.QOS) bool { return q.Name == b.QOS })
			if i < 0 || j < 0 || !slices.Contains(w.rules.QOS[i].Preempts, b.QOS) || slices.Contains(w.rules.QOS[j].Preempts, a.QOS) {
				return false
			}
		case "partition":
			if max(w.tier(a), 1) <= max(w.tier(b), 1) {
				return false
			}
		case "priority":
			if prio <= other {
				return false
			}
		}
	}
	return true
}

// preempted checks one victim. All victims of one job come one after the other.
func (w *world) preempted(t *rapid.T, d sched.Preempt) {
	q, h := w.queue[d.For], w.book.Held[d.Job]
	switch {
	case q == nil || q.blocked:
		t.Fatalf("job %d is taken for job %d, which does not wait", d.Job, d.For)
	case h.Spec == nil || w.stopping[d.Job]:
		t.Fatalf("job %d is taken and does not run, or is being ended", d.Job)
	case !w.outranks(q.Spec, q.Priority, h.Spec, h.Priority):
		t.Fatalf("job %d (%s, %d) is taken for job %d (%s, %d), which does not outrank it", d.Job, h.Spec.QOS, h.Priority, d.For, q.Spec.QOS, q.Priority)
	case h.Spec.QOS == "mid" && w.rules.QOS[1].PreemptMode == account.PreemptOff && !slices.Equal(w.rules.Preemption.By, []string{"partition"}):
		t.Fatalf("job %d is taken and protected", d.Job)
	case w.started[d.Job]+sched.Instant(w.rules.Preemption.Exempt) > w.now:
		t.Fatalf("job %d is taken at %d, it began at %d", d.Job, w.now, w.started[d.Job])
	case w.parked[d.Job] != nil:
		t.Fatalf("job %d is to be suspended, and is", d.Job)
	case (d.Mode == account.PreemptSuspend) != (w.rules.Preemption.Mode == account.PreemptSuspend):
		t.Fatalf("job %d: mode %s", d.Job, d.Mode)
	case d.Mode == account.PreemptSuspend:
		w.halting[d.Job] = true
	case (d.Mode == account.PreemptRequeue) != h.Spec.Requeue:
		t.Fatalf("job %d: mode %s, and that it may be requeued is %v", d.Job, d.Mode, h.Spec.Requeue)
	}
	w.taken = append(w.taken, d)
	w.stopping[d.Job] = true
	w.stopAdded(d.Job)
}

// needed checks the victims of a step: with them gone the job fits beside all that
// is held for others, and without one of them it does not.
func (w *world) needed(t *rapid.T) {
	taken, asked := w.taken, w.asked
	w.taken, w.asked = nil, nil
	if len(w.parked) > 0 || len(taken)+len(asked) == 0 || slices.ContainsFunc(asked, func(d sched.Shrink) bool { return len(taken) > 0 || d.For != asked[0].For }) {
		return // what suspended jobs lend is not known here
	}
	if len(taken) == 0 {
		w.neededOf(t, asked)
		return
	}
	if w.core.Reserved() > 1 || slices.ContainsFunc(taken, func(d sched.Preempt) bool { return d.For != taken[0].For }) {
		return // what others are nominated for, and lost, is not known here
	}
	q := w.queue[taken[0].For]
	if q == nil || q.told.Code != reason.Preempting {
		return // somebody of higher order took it in the same step
	}
	held := w.book.Held
	defer func() { w.book.Held = held }()
	defer w.shutOut(q.Spec)()
	without := func(stays job.ID, beside map[job.ID]schedtest.Held) bool {
		w.book.Held = maps.Clone(beside)
		for id, h := range held {
			if w.halting[id] && id != stays {
				h.Claims = bare(h.Claims)
				w.book.Held[id] = h
			} else if !w.stopping[id] || id == stays {
				h.Claims = slices.Clone(h.Claims)
				for _, a := range w.added[id] {
					if a.stopping && id != stays {
						h.Claims = minus(h.Claims, a.claims)
					}
				}
				w.book.Held[id] = h
			}
		}
		return w.book.Fits(q.Spec)
	}
	if !without(0, map[job.ID]schedtest.Held{}) {
		t.Fatalf("job %d does not fit with all victims gone: %+v", q.Job, taken)
	}
	for _, d := range taken {
		if without(d.Job, map[job.ID]schedtest.Held{}) && without(d.Job, w.ousted()) {
			t.Fatalf("job %d fits without job %d going: %+v", q.Job, d.Job, taken)
		}
	}
}

// ousted is what was held, before the step, for those who have lost it to others by now and
// wait still. It may have been held when somebody was taken, and lost after that: one who
// has it comes before some, and not before others.
func (w *world) ousted() map[job.ID]schedtest.Held {
	out := maps.Clone(w.nominated)
	maps.DeleteFunc(out, func(id job.ID, _ schedtest.Held) bool { return w.queue[id] == nil })
	w.core.Nominated(func(id job.ID, _ []fleet.Claim) { delete(out, id) })
	return out
}

// shutOut takes down the nodes of the book that reservations keep a job off, until the
// returned function is called.
func (w *world) shutOut(spec *job.Spec) func() {
	nodes := w.book.Nodes
	w.book.Nodes = map[string]fleet.Node{}
	for name, n := range nodes {
		if !w.openTo(spec, name) {
			n.State = fleet.Down
		}
		w.book.Nodes[name] = n
	}
	return func() { w.book.Nodes = nodes }
}

// hold enters what is held for nominated jobs in the book, until the returned
// function is called.
func (w *world) hold(t *rapid.T) func() {
	w.needed(t)
	const far = 1 << 40
	var ids []job.ID
	nominated := map[job.ID][]fleet.Claim{}
	w.nominated = map[job.ID]schedtest.Held{}
	w.core.Nominated(func(id job.ID, claims []fleet.Claim) {
		if q := w.queue[id]; q == nil || q.blocked || q.told.Code != reason.Preempting {
			t.Fatalf("something is held for job %d, which does not wait for it: %+v", id, q)
		}
		ids = append(ids, id+far)
		w.nominated[id] = schedtest.Held{Spec: w.queue[id].Spec, Claims: claims}
		w.book.Held[id+far] = w.nominated[id]
		nominated[id+far] = claims
	})
	ids = append(ids, w.kept(t, nominated)...)
	for id, q := range w.queue {
		if _, holds := w.book.Held[id+far]; q.told.Code == reason.Preempting && !holds {
			t.Fatalf("job %d is told that somebody goes for it, and nothing is held for it", id)
		}
	}
	return func() {
		for _, id := range ids {
			delete(w.book.Held, id)
		}
	}
}

// gone lets one of those end who are being ended, and come back if it may.
func (w *world) gone(t *rapid.T) {
	if id, ok := some(t, w.stopping, "gone"); ok {
		w.leave(t, id)
	}
}

// leave lets one end.
func (w *world) leave(t *rapid.T, id job.ID) {
	home := w.homeOf(id)
	w.step(t, w.release1(id)...)
	if home != nil {
		w.came(t, id, home)
	}
}

func (w *world) release1(id job.ID) []sched.Event {
	if w.halting[id] {
		return []sched.Event{sched.Suspended{Job: id}}
	}
	h := w.book.Held[id]
	out := []sched.Event{sched.Released{Job: id}}
	if h.Spec.Requeue {
		return append(out, sched.Submitted{Job: id, Spec: h.Spec, Priority: h.Priority, At: w.now, Moved: w.moved[id]})
	}
	w.ended++
	return out
}

// quiet lets those who are being ended go, and come back, while nothing else happens:
// it comes to an end, and nobody is left who waits for somebody to go.
func (w *world) quiet(t *rapid.T) {
	for round := 0; len(w.stopping)+len(w.leaving()) > 0; round++ {
		if round > 200 {
			t.Fatalf("preemption goes round: %v are being ended, %v asked back", w.stopping, w.leaving())
		}
		if all := w.leaving(); len(w.stopping) == 0 {
			w.step(t, all[0])
			continue
		}
		ids := make([]job.ID, 0, len(w.stopping))
		for id := range w.stopping {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		w.leave(t, ids[0])
	}
	if n := w.core.Nominees(); n > 0 {
		t.Fatalf("%d jobs wait for others to go, and nobody goes", n)
	}
}

// crowd has more jobs come where they may take each other's place.
func (w *world) crowd(t *rapid.T) {
	if w.rules != nil {
		w.now += sched.Instant(rapid.IntRange(0, 3).Draw(t, "seconds")) * sched.Instant(time.Second)
		w.step(t, w.submit(t)...)
	}
}
