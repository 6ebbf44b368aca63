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

// TestLawsWithMoves is TestLaws on a site that moves running jobs, or proposes it, and
// checks besides that
//
//   - only jobs move that have reported a checkpoint, may be requeued, have rested, and
//     are not being ended;
//   - once they are gone the job for which they move fits, in the very place that is
//     held for it, and each of them in its own beside it and beside all others: by the
//     book;
//   - one that waits again because it was moved starts in its migration target in the same step, or
//     as soon as the others are gone, unless the home was lost with a node;
//   - nothing starts on a migration target, and nothing is left of one when its job is gone;
//   - all moves of a proposal are made, or none;
//   - after a restart the migration targets are the same.
//
// Seen to fail with: lodge left out, Settles that does not take the gang's claims,
// tally not counting savers, goers that leaves out those who go for nobody. Not seen
// to find: rest ignored (TestRestAfterAMove does).
func TestLawsWithMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, moveRules(t))
		w.anything(t)
		w.quiet(t)
	})
}

// moveRules draws whether jobs are moved; they may take each other's place as well.
func moveRules(t *rapid.T) *account.Policy {
	p := &account.Policy{}
	if rapid.IntRange(0, 3).Draw(t, "preemption too") == 0 {
		p = rules(t)
	}
	p.Preemption.Defrag = rapid.SampledFrom([]string{account.DefragAutomatic, account.DefragAutomatic, account.DefragAsk}).Draw(t, "defrag")
	p.Preemption.DefragRest = account.Duration(rapid.SampledFrom([]int{1, 5, 3600}).Draw(t, "rest")) * account.Duration(time.Second)
	return p
}

// movement is what a world knows of moves.
type movement struct {
	saved, moved map[job.ID]sched.Instant
	goesFor      map[job.ID]job.ID
	homes        map[job.ID][]fleet.Claim // of jobs that are being stopped
	lost         map[job.ID]bool          // migration targets of which a node has changed
	proposal     sched.Proposal
	made         []sched.Preempt // in the step that is being checked
}

func newMovement() movement {
	return movement{map[job.ID]sched.Instant{}, map[job.ID]sched.Instant{}, map[job.ID]job.ID{}, map[job.ID][]fleet.Claim{}, map[job.ID]bool{}, sched.Proposal{}, nil}
}

// save lets a running job report a checkpoint.
func (w *world) save(t *rapid.T) {
	if w.rules == nil || w.rules.Preemption.Defrag == "" || len(w.book.Held) == 0 {
		return
	}
	w.now += sched.Instant(time.Second)
	var events []sched.Event
	for _, id := range slices.Sorted(maps.Keys(w.book.Held)) {
		if rapid.IntRange(0, 2).Draw(t, "saves") > 0 {
			w.saved[id] = w.now
			events = append(events, sched.Saved{Job: id, At: w.now})
		}
	}
	w.step(t, events...)
}

// pieces draws jobs of which small ones lie in the way of larger ones.
func pieces(t *rapid.T, s *job.Spec) {
	s.TimeLimit = time.Duration(rapid.SampledFrom([]int{0, 0, 20, 1000, 100000}).Draw(t, "limit")) * time.Second
	s.TimeMin, s.Partitions, s.Licenses, s.Requeue = 0, nil, "", rapid.IntRange(0, 9).Draw(t, "requeue") > 0
	s.QOS = rapid.SampledFrom([]string{"lo", "lo", "lo", "mid"}).Draw(t, "qos")
	g := job.TaskGroup{Tasks: job.Count{Want: 1}}
	g.PerTask.CPU = resource.CPUs(rapid.SampledFrom([]int{1, 1, 2, 2, 3, 4}).Draw(t, "cpus"))
	if rapid.IntRange(0, 3).Draw(t, "gang") == 0 {
		g.Tasks.Want = rapid.IntRange(2, 3).Draw(t, "tasks")
		g.Nodes = job.Range{Min: g.Tasks.Want, Max: g.Tasks.Want}
	}
	if rapid.IntRange(0, 3).Draw(t, "alone") == 0 {
		g.Exclusive = true
	}
	s.Groups = []job.TaskGroup{g}
}

// fragment has small jobs fill the fleet, some of them end, and a large one come.
func (w *world) fragment(t *rapid.T) {
	if w.rules == nil || w.rules.Preemption.Defrag == "" {
		return
	}
	empty := func() (out []sched.Event) {
		for _, id := range slices.Sorted(maps.Keys(w.queue)) {
			w.ended++
			out = append(out, sched.Withdrawn{Job: id})
		}
		return out
	}
	come := func(cpus, limit int) sched.Event {
		w.next++
		w.submitted++
		s := &job.Spec{Requeue: true, QOS: "lo", TimeLimit: time.Duration(limit) * time.Second}
		g := job.TaskGroup{Tasks: job.Count{Want: 1}}
		g.PerTask.CPU = resource.CPUs(cpus)
		s.Groups = []job.TaskGroup{g}
		return sched.Submitted{Job: w.next, Spec: s, At: w.now}
	}
	events := empty()
	for range rapid.IntRange(4, 16).Draw(t, "small ones") {
		events = append(events, come(rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "cpus"), 0))
	}
	w.step(t, events...)
	w.step(t, empty()...)
	w.save(t)
	var gone []sched.Event
	for _, id := range slices.Sorted(maps.Keys(w.book.Held)) {
		if !w.stopping[id] && rapid.Bool().Draw(t, "ends") {
			w.ended++
			gone = append(gone, sched.Released{Job: id})
		}
	}
	w.now += sched.Instant(rapid.IntRange(0, 2).Draw(t, "seconds")) * sched.Instant(time.Second)
	large := rapid.IntRange(2, 6).Draw(t, "large")
	w.step(t, append(gone, come(large, rapid.SampledFrom([]int{0, 10}).Draw(t, "limit")))...)
	w.approve(t)
}

// approve carries out what is proposed: all of it or nothing, and all of it if nothing
// has happened since.
func (w *world) approve(t *rapid.T) {
	if len(w.proposal.Moves) == 0 {
		return
	}
	p, before := w.proposal, len(w.homes)
	of := sched.Approved{For: p.For, Claims: p.Claims, Moves: slices.Clone(p.Moves)}
	switch rapid.IntRange(0, 6).Draw(t, "another one") {
	case 0:
		of.Moves = of.Moves[1:]
	case 1: // the same jobs, to another place
		m := &of.Moves[0]
		m.Home = slices.Clone(m.Home)
		m.Home[0].Node += "x"
	case 2: // and the one for which they move
		of.Claims = slices.Clone(of.Claims)
		of.Claims[0].Node += "x"
	default:
		w.step(t, of)
		if made := len(w.homes) - before; made != 0 && made != len(p.Moves) {
			t.Fatalf("%d of %d moves were made", made, len(p.Moves))
		}
		return
	}
	w.step(t, of)
	alone := w.policy != nil && w.policy.Preemption.Defrag == account.DefragAutomatic // the rules, which may be newer than the proposal, make moves without anybody
	if len(w.homes) > before && !alone {
		t.Fatalf("what was approved is not what was proposed, and is made: %+v, %+v", of, p)
	}
}

// moves checks one job that is asked to move.
func (w *world) moves(t *rapid.T, d sched.Preempt) {
	h, q := w.book.Held[d.Job], w.queue[d.For]
	rest := w.moved[d.Job] + sched.Instant(w.rules.Preemption.DefragRest)
	switch {
	case w.rules.Preemption.Defrag == "" || d.Mode != account.PreemptCheckpoint:
		t.Fatalf("job %d is moved: %+v", d.Job, d)
	case q == nil || q.blocked:
		t.Fatalf("job %d is moved for job %d, which does not wait", d.Job, d.For)
	case h.Spec == nil || w.stopping[d.Job] || !h.Spec.Requeue || w.saved[d.Job] <= w.started[d.Job]:
		t.Fatalf("job %d is moved: it does not run, is being ended, or does not save (%d, began %d)", d.Job, w.saved[d.Job], w.started[d.Job])
	case w.moved[d.Job] > 0 && rest > w.now:
		t.Fatalf("job %d is moved again, after %d", d.Job, w.now-w.moved[d.Job])
	}
	w.stopping[d.Job] = true
	w.goesFor[d.Job], w.homes[d.Job] = d.For, d.Home
	w.moved[d.Job] = w.now
	w.made = append(w.made, d)
}

// kept enters the migration targets in the book, and checks them and what is held for nominated
// jobs: all of it has room beside what stays.
func (w *world) kept(t *rapid.T, nominated map[job.ID][]fleet.Claim) (ids []job.ID) {
	const far = 1 << 41
	rest := &schedtest.Book{Nodes: w.book.Nodes, Held: map[job.ID]schedtest.Held{}}
	for id, h := range w.book.Held {
		if !w.stopping[id] && nominated[id] == nil {
			for _, a := range w.added[id] {
				if a.stopping {
					h.Claims = minus(h.Claims, a.claims)
				}
			}
			rest.Held[id] = h
		}
	}
	have := map[job.ID]bool{}
	put := func(id job.ID, spec *job.Spec, claims []fleet.Claim) {
		for _, c := range claims {
			if n := w.book.Nodes[c.Node]; n.State != fleet.Up {
				return // it is given up with the next cycle
			}
		}
		if err := rest.Start(sched.Start{Job: id, Claims: claims}, spec); err != nil && w.rules != nil && w.rules.Preemption.Defrag != "" {
			t.Fatalf("what is held for others does not fit beside what stays: %v", err)
		}
	}
	for id, claims := range nominated {
		put(id, w.book.Held[id].Spec, claims)
	}
	w.core.Homes(func(id job.ID, claims []fleet.Claim) {
		have[id] = true
		h := w.book.Held[id]
		if h.Spec == nil || string(encode(w.homes[id])) != string(encode(claims)) {
			t.Fatalf("a home is kept for job %d, which has none or does not run", id)
		}
		put(id+far, h.Spec, claims)
		ids = append(ids, id+far)
		w.book.Held[id+far] = schedtest.Held{Spec: h.Spec, Claims: claims}
	})
	for id := range w.homes {
		if w.stopping[id] && !have[id] && !w.lost[id] {
			t.Fatalf("job %d moves, and its home is not kept", id)
		}
	}
	for _, d := range w.made {
		if q := w.queue[d.For]; q == nil || q.told.Code != reason.Preempting {
			t.Fatalf("job %d moves for job %d, for which nothing is held", d.Job, d.For)
		}
	}
	w.made = nil
	return ids
}

// came checks a job that waits again after it was moved.
func (w *world) came(t *rapid.T, id job.ID, home []fleet.Claim) {
	if q := w.queue[id]; q != nil && slices.ContainsFunc(home, func(c fleet.Claim) bool { return !w.openTo(q.Spec, c.Node) }) {
		return // a reservation came in between
	}
	if h, runs := w.book.Held[id]; runs && string(encode(h.Claims)) != string(encode(home)) {
		t.Fatalf("job %d was to move to %s and starts on %s", id, encode(home), encode(h.Claims))
	} else if q := w.queue[id]; !runs && q.told.Code != reason.Preempting {
		t.Fatalf("job %d was to move to %s and waits: %+v", id, encode(home), q.told)
	}
}

// lose notes that migration targets on a node are given up.
func (w *world) lose(node string) {
	for id, home := range w.homes {
		if slices.ContainsFunc(home, func(c fleet.Claim) bool { return c.Node == node }) {
			w.lost[id] = true
		}
	}
}

// homeOf is what a restart tells of a job's home.
func (w *world) homeOf(id job.ID) []fleet.Claim {
	if w.lost[id] {
		return nil
	}
	return w.homes[id]
}

// TestRestAfterAMove: a job that was moved is moved again only when it has rested.
func TestRestAfterAMove(t *testing.T) {
	const second = sched.Instant(time.Second)
	spec := func(cpus int) *job.Spec {
		g := job.TaskGroup{Tasks: job.Count{Want: 1}}
		g.PerTask.CPU = resource.CPUs(cpus)
		return &job.Spec{Requeue: true, Groups: []job.TaskGroup{g}}
	}
	claim := func(node string, cpus int) []fleet.Claim {
		return []fleet.Claim{{Node: node, Tasks: 1, Take: resource.Vector{CPU: resource.CPUs(cpus)}}}
	}
	c := sched.New(sched.Config{})
	var events []sched.Event
	for _, name := range []string{"n1", "n2"} {
		events = append(events, sched.NodeSet{Node: fleet.Node{Name: name, State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(4)}}})
	}
	p := &account.Policy{Preemption: account.Preemption{Defrag: account.DefragAutomatic, DefragRest: account.Duration(20 * time.Second)}}
	out := c.Step(100*second, append(
		events, sched.PolicySet{Policy: p},
		sched.Restored{Job: 1, Spec: spec(1), Claims: claim("n1", 1), Began: 90 * second, Saved: 95 * second, Moved: 85 * second},
		sched.Restored{Job: 2, Spec: spec(2), Claims: claim("n2", 2), Began: 90 * second},
		sched.Submitted{Job: 3, Spec: spec(4), At: 100 * second},
	)...)
	asked := func(out []sched.Decision) (ids []job.ID) {
		for _, d := range out {
			if d, ok := d.(sched.Preempt); ok {
				ids = append(ids, d.Job)
			}
		}
		return ids
	}
	if ids := asked(out); len(ids) > 0 || c.Next() != 105*second {
		t.Fatalf("%v are asked to move, 15 s after the last move; the core wants to be asked at %d", ids, c.Next()/second)
	}
	if ids := asked(c.Step(105 * second)); !slices.Equal(ids, []job.ID{1}) {
		t.Fatalf("after 20 s %v are asked to move, want job 1", ids)
	}
}

// TestNobodyHoldsItself: a job for which others stop is not among those that hold what
// it needs. Seen to fail without the rule in Holders.
func TestNobodyHoldsItself(t *testing.T) {
	const second = sched.Instant(time.Second)
	g := job.TaskGroup{Tasks: job.Count{Want: 1}}
	g.PerTask.CPU = resource.CPUs(4)
	spec := func(qos string) *job.Spec {
		return &job.Spec{QOS: qos, Requeue: true, TimeLimit: time.Hour, Groups: []job.TaskGroup{g}}
	}
	c := sched.New(sched.Config{})
	p := &account.Policy{
		QOS:        []account.QOS{{Name: "lo"}, {Name: "hi", Priority: 10, Preempts: []string{"lo"}}},
		Preemption: account.Preemption{By: []string{"qos"}},
	}
	c.Step(100*second, sched.PolicySet{Policy: p}, sched.Submitted{Job: 1, Spec: spec("lo"), At: 100 * second},
		sched.NodeSet{Node: fleet.Node{Name: "n1", State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(4)}}})
	c.Step(101*second, sched.Submitted{Job: 2, Spec: spec("hi"), At: 101 * second})
	var ids []job.ID
	for _, h := range c.Blockers(2) {
		ids = append(ids, h.Job)
	}
	if !slices.Equal(ids, []job.ID{1}) {
		t.Errorf("job 2 waits for %v, want job 1 alone", ids)
	}
}
