package control_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// foreign is a world of two pools, one of which has a scheduler of its own, and what the test
// knows of it beside the control plane.
type foreign struct {
	*bench
	clock *clock
	far   *hand
	hands []*hand
	dice  *rand.Rand
	jobs  []job.ID
	gpus  map[job.ID]int
	user  map[job.ID]string
	first map[engine.Ref]time.Time // when an attempt was first seen
	began map[engine.Ref]time.Time
	wall  map[string]float64 // seconds that jobs really ran, by user
}

// TestTwoPoolsAtRandom: what is handed over to another scheduler never asks for more than its
// pool has, a job has one attempt at most, every job ends once, and is charged for the time in
// which it ran, whatever that scheduler does (begins in an order of its own and is heard of late,
// requeues, cancels, refuses, loses), whoever holds, cancels and requeues, and whenever the
// server is started anew. The seeds are fixed.
//
// Seen to fail with: what is heard of late not charged (begin without Book.Late); the wait
// charged (run.waits never set).
func TestTwoPoolsAtRandom(t *testing.T) {
	seeds := uint64(8)
	if testing.Short() { // under the race detector
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { atRandom(t, seed) })
	}
}

func atRandom(t *testing.T, seed uint64) {
	c, p, q := newClock(), named("a", 1, 8), far(2, 8)
	w := &foreign{
		bench: two(t, p, q, control.Config{Clock: c}), clock: c, far: q, hands: []*hand{p, q}, dice: rand.New(rand.NewPCG(seed, 7)),
		gpus: map[job.ID]int{}, user: map[job.ID]string{}, first: map[engine.Ref]time.Time{}, began: map[engine.Ref]time.Time{}, wall: map[string]float64{},
	}
	rules := shared()
	rules.Rules.FairShare.HalfLife = -1
	w.set(rules)
	for range 120 {
		w.step()
		w.look()
	}
	for range 300 {
		if w.over() {
			break
		}
		w.finish()
		w.look()
	}
	if !w.over() {
		for _, id := range w.jobs {
			if v, err := w.ctl.Job(t.Context(), id); err == nil && !v.Job.State.Final() {
				t.Errorf("job %d never ends: %s, attempt %s %s, %s", id, v.Job.State, v.Ref, v.Report.Phase, v.Why)
			}
		}
	}
	w.charged()
	w.reopen()
	w.charged()
}

// step lets one thing happen.
func (w *foreign) step() {
	switch n := w.dice.IntN(20); {
	case n < 5:
		w.come()
	case n < 9:
		w.begin()
	case n < 13:
		w.end([]engine.Cause{engine.Exited, engine.Exited, engine.Preempted, engine.Cancelled, engine.NodeLost, engine.OutOfMemory}[w.dice.IntN(6)])
	case n == 13:
		w.refuse()
	case n == 14:
		w.lose()
	case n < 18 && len(w.jobs) > 0:
		id := w.jobs[w.dice.IntN(len(w.jobs))]
		ops := []control.Op{control.Hold{On: true}, control.Hold{}, control.Cancel{}, control.Requeue{}}
		if err := ask(w.t.Context(), w.ctl, id, ops[w.dice.IntN(len(ops))]); err != nil && fault.KindOf(err) != fault.Conflict {
			w.t.Fatal(err)
		}
	case n == 18:
		w.reopen()
	default:
		w.pass(w.clock, time.Duration(1+w.dice.IntN(400))*time.Second)
	}
}

func (w *foreign) come() {
	acct, user := "a", "u"
	if w.dice.IntN(2) == 0 {
		acct, user = "b", "v"
	}
	s := charged(acct, user, gang(1, 1+w.dice.IntN(8)))
	nodes := 1
	if w.dice.IntN(4) > 0 {
		nodes = 1 + w.dice.IntN(2)
		s = in("q", charged(acct, user, gang(nodes, 1+w.dice.IntN(8))))
	}
	s.Requeue = w.dice.IntN(2) == 0
	id := w.submit(s)
	w.jobs, w.user[id] = append(w.jobs, id), user
	w.gpus[id] = nodes * s.Groups[0].PerNode.Devices[0].Count
}

// any is an attempt of a phase in one of the pools; nil: there is none.
func (w *foreign) any(phase engine.Phase) (*hand, *engine.Report) {
	h := w.hands[w.dice.IntN(len(w.hands))]
	var all []engine.Report
	h.mu.Lock()
	for _, r := range h.reports {
		if r.Phase == phase {
			all = append(all, r)
		}
	}
	h.mu.Unlock()
	slices.SortFunc(all, func(a, b engine.Report) int { return cmp.Compare(a.Ref.Allocation, b.Ref.Allocation) })
	if len(all) == 0 {
		return nil, nil
	}
	return h, &all[w.dice.IntN(len(all))]
}

// begin has an attempt begin, which may have been a while ago.
func (w *foreign) begin() {
	h, r := w.any(engine.Accepted)
	if r == nil || h != w.far {
		return
	}
	at := w.clock.Now()
	if since, seen := w.first[r.Ref]; seen && w.dice.IntN(2) == 0 { // it is heard of late
		at = since.Add(time.Duration(w.dice.Int64N(int64(at.Sub(since)/time.Second)+1)) * time.Second)
	}
	w.began[r.Ref] = at
	h.report(engine.Report{Ref: r.Ref, Phase: engine.Running, Started: at})
}

func (w *foreign) end(cause engine.Cause) {
	if h, r := w.any(engine.Running); r != nil {
		w.ended(h, r, cause)
	}
}

func (w *foreign) ended(h *hand, r *engine.Report, cause engine.Cause) {
	if at, ok := w.began[r.Ref]; ok {
		w.wall[w.user[r.Job]] += w.clock.Now().Sub(at).Seconds()
		delete(w.began, r.Ref)
	}
	h.report(engine.Report{Ref: r.Ref, Phase: engine.Ended, Gone: true, Cause: cause, Started: r.Started, Ended: w.clock.Now()})
}

// refuse has the other scheduler refuse what waits there, or end it before anything is heard
// of its start.
func (w *foreign) refuse() {
	h, r := w.any(engine.Accepted)
	if r == nil {
		return
	}
	if h == w.far && w.dice.IntN(2) == 0 {
		since, seen := w.first[r.Ref]
		if !seen {
			since = w.clock.Now()
		}
		w.began[r.Ref], r.Started = since, since
		w.ended(h, r, engine.Exited)
		return
	}
	if h == w.far {
		w.ended(h, r, engine.Refused)
	}
}

// lose has the other scheduler forget what waits there.
func (w *foreign) lose() {
	if h, r := w.any(engine.Accepted); r != nil && h == w.far {
		h.mu.Lock()
		delete(h.reports, r.Ref)
		h.mu.Unlock()
	}
}

// obey ends what was to be stopped.
func (w *foreign) obey() {
	for _, h := range w.hands {
		h.mu.Lock()
		var stopped []engine.Report
		for ref := range h.stops {
			if r, ok := h.reports[ref]; ok && r.Phase != engine.Ended {
				stopped = append(stopped, r)
			}
		}
		h.mu.Unlock()
		for i := range stopped {
			w.ended(h, &stopped[i], engine.Stopped)
		}
	}
}

// look judges what is to be seen now.
func (w *foreign) look() {
	w.quiet()
	if w.dice.IntN(3) > 0 {
		w.obey()
	}
	w.quiet()
	live := map[job.ID]engine.Ref{}
	held := 0
	for _, h := range w.hands {
		h.mu.Lock()
		for ref, r := range h.reports {
			if r.Phase == engine.Ended {
				continue
			}
			if was, two := live[r.Job]; two {
				w.t.Errorf("job %d has attempts %s and %s", r.Job, was, ref)
			}
			live[r.Job] = ref
			if h == w.far {
				held += w.gpus[r.Job]
			}
		}
		h.mu.Unlock()
	}
	if held > 16 {
		w.t.Errorf("jobs that ask for %d GPUs are handed over to a pool of 16", held)
	}
}

// quiet waits until the engines have what is to run and the control plane has heard what became
// of it. What is placed begins at once.
func (w *foreign) quiet() {
	w.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) { // there is no event for it
		w.pass(w.clock, 0)
		if w.settled() {
			return
		}
		if time.Now().After(end) {
			w.t.Fatal("the control plane and the engines never agree")
		}
	}
}

func (w *foreign) settled() bool {
	ok := true
	now := map[job.ID]state.View{}
	for _, id := range w.jobs {
		v, err := w.ctl.Job(w.t.Context(), id)
		if err != nil {
			w.t.Fatal(err)
		}
		now[id] = v
		sent := v.Job.State.Final() || v.Ref.Attempt == 0
		for _, h := range w.hands {
			h.mu.Lock()
			sent = sent || h.launches[v.Ref] > 0 || h.fenced[v.Ref]
			h.mu.Unlock()
		}
		ok = ok && sent
	}
	for _, h := range w.hands {
		h.mu.Lock()
		for ref, r := range h.reports {
			if _, seen := w.first[ref]; !seen {
				w.first[ref] = w.clock.Now()
			}
			switch v := now[r.Job]; {
			case r.Phase == engine.Ended, v.Ref == ref && v.Report.Version < r.Version:
				ok = false
			case r.Phase == engine.Accepted && h != w.far:
				w.began[ref] = w.clock.Now()
				h.put(engine.Report{Ref: ref, Job: r.Job, Phase: engine.Running, Started: w.clock.Now()})
				ok = false
			}
		}
		h.mu.Unlock()
	}
	return ok
}

func (w *foreign) over() bool {
	return !slices.ContainsFunc(w.jobs, func(id job.ID) bool {
		v, err := w.ctl.Job(w.t.Context(), id)
		return err != nil || !v.Job.State.Final()
	})
}

// finish lets everything go on to its end.
func (w *foreign) finish() {
	for _, id := range w.jobs {
		_ = ask(w.t.Context(), w.ctl, id, control.Hold{})
	}
	w.quiet()
	w.pass(w.clock, 40*time.Second)
	w.obey()
	w.begin()
	w.end(engine.Exited)
}

// charged compares what users are charged for with the time that their jobs ran.
func (w *foreign) charged() {
	w.pass(w.clock, 10*time.Minute)
	w.pass(w.clock, 0)
	list, err := w.ctl.Shares(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range list {
		want := w.wall[s.User]
		if s.User != "" && (s.Wall < want-float64(len(w.jobs)) || s.Wall > want+float64(len(w.jobs))) {
			w.t.Errorf("%s ran for %v s and is charged for %v s", s.User, want, s.Wall)
		}
	}
}
