package sched_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/limit"
	"github.com/coxswain-sched/coxswain/sched/schedtest"
	"github.com/coxswain-sched/coxswain/sched/snapshot"
)

// TestMain raises the number of drawn cases: the laws need more than the default. make torture draws
// ten times as many.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		checks := "200"
		if os.Getenv("COX_LONG") != "" {
			checks = "2000"
		}
		flag.Set("rapid.checks", checks)
	}
	os.Exit(m.Run())
}

// world drives a core and keeps a book of everything beside it.
type world struct {
	core      *sched.Core
	book      *schedtest.Book
	now       sched.Instant
	queue     map[job.ID]*waiting
	next      job.ID
	submitted int
	ended     int
	promised  sched.Promise
	log       []entry // all steps of this core
	policy    *account.Policy
	oracle    *limit.Slow             // of the state as it is; nil: to be made
	below     func(q *job.Spec) bool  // whether a fair share is below the threshold; nil: none is
	compare   func(a, b *waiting) int // the order of the queue; nil: by the jobs' own priorities

	elastic bool                  // most jobs are
	begun   map[job.ID]bool       // running jobs that may grow
	base    map[job.ID]int        // how many claims a running job started with
	added   map[job.ID][]addition // what elastic ones were given since
	settled map[job.ID]bool       // elastic ones that are not to grow

	rules    *account.Policy // nil: none
	stopping map[job.ID]bool // running jobs that are being ended
	started  map[job.ID]sched.Instant
	taken    []sched.Preempt // in the step that is being checked
	asked    []sched.Shrink  // the same

	nominated map[job.ID]schedtest.Held // what was held, at the last look, for those who wait for others to go
	halting   map[job.ID]bool           // of stopping: they are being suspended
	parked    map[job.ID][]fleet.Claim  // what suspended jobs hold when they go on

	movement
}

// waiting is a queued job as the world knows it.
type waiting struct {
	sched.Submitted
	blocked bool
	told    reason.Reason
	since   int64 // second since when it is not blocked
}

type entry struct {
	now    sched.Instant
	events []sched.Event
	out    []byte
}

func newWorld(t *rapid.T, rules *account.Policy, bare ...bool) *world {
	w := &world{core: sched.New(sched.Config{}), book: schedtest.NewBook(), queue: map[job.ID]*waiting{}, stopping: map[job.ID]bool{}, halting: map[job.ID]bool{}, parked: map[job.ID][]fleet.Claim{}, started: map[job.ID]sched.Instant{}, now: sched.Instant(time.Hour), rules: rules, movement: newMovement()}
	w.book.Forms = w.forms
	w.base, w.begun, w.added, w.settled = map[job.ID]int{}, map[job.ID]bool{}, map[job.ID][]addition{}, map[job.ID]bool{}
	var events []sched.Event
	if w.rules != nil {
		events = append(events, sched.PolicySet{Policy: w.rules})
	}
	for _, n := range schedtest.Nodes(t) {
		events = append(events, sched.NodeSet{Node: n})
	}
	if rules == nil && len(bare) == 0 && rapid.Bool().Draw(t, "policy") {
		events = append(events, sched.PolicySet{Policy: policy(t)})
	}
	w.elastic = rapid.IntRange(0, 2).Draw(t, "elastic jobs") == 0
	w.step(t, events...)
	return w
}

// policy draws the rules of a site.
func policy(t *rapid.T) *account.Policy {
	p := &account.Policy{}
	if rapid.Bool().Draw(t, "limits") {
		p = schedtest.Limits(t)
	}
	p.Reservations = reservations(t)
	p.Topology.SwitchWait = account.Duration(rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "switch wait")) * account.Duration(time.Second)
	p.Placement = rapid.SampledFrom([]string{"", account.PlaceTight, account.PlaceLearned}).Draw(t, "placement")
	p.Backfill.Reservations = rapid.SampledFrom([]int{0, 0, 1, 2, 3, 100}).Draw(t, "reservations")
	return p
}

// step applies events to the core and the book and checks every law.
func (w *world) step(t *rapid.T, events ...sched.Event) {
	for _, e := range events {
		w.apply(t, e)
	}
	w.lend()
	out := w.core.Step(w.now, events...)
	w.log = append(w.log, entry{w.now, events, encode(out)})
	for _, d := range out {
		w.decide(t, d)
	}
	w.keep(t)
	w.check(t)
}

func (w *world) apply(t *rapid.T, e sched.Event) {
	w.oracle = nil
	switch e := e.(type) {
	case sched.NodeSet:
		w.book.Nodes[e.Node.Name] = e.Node
		w.lose(e.Node.Name)
	case sched.NodeRemoved:
		delete(w.book.Nodes, e.Name)
		w.lose(e.Name)
	case sched.PolicySet:
		w.policy = e.Policy
	case sched.Submitted:
		since := int64(w.now) / int64(time.Second)
		if old := w.queue[e.Job]; old != nil && !old.blocked {
			since = old.since
		}
		q := &waiting{Submitted: e, since: since}
		if old := w.queue[e.Job]; old != nil {
			q.told = old.told // it is told only what has changed
		}
		w.queue[e.Job] = q
	case sched.Withdrawn:
		delete(w.queue, e.Job)
	case sched.Blocked:
		w.queue[e.Job].blocked = true
	case sched.Unblocked:
		if q := w.queue[e.Job]; q.blocked {
			q.blocked, q.since = false, int64(w.now)/int64(time.Second)
		}
	case sched.Extended:
		h := w.book.Held[e.Job]
		h.Until = e.Until
		w.book.Held[e.Job] = h
	case sched.Released:
		delete(w.book.Held, e.Job)
		delete(w.stopping, e.Job)
		delete(w.halting, e.Job)
		delete(w.parked, e.Job)
		delete(w.saved, e.Job)
		delete(w.goesFor, e.Job)
		delete(w.homes, e.Job)
		delete(w.lost, e.Job)
		delete(w.added, e.Job)
		delete(w.settled, e.Job)
		delete(w.begun, e.Job)
	case sched.Begun:
		w.begun[e.Job] = true
	case sched.Dropped:
		w.dropped(e)
	case sched.Stopping:
		w.stopping[e.Job] = true
		delete(w.halting, e.Job)
		w.stopAdded(e.Job)
	case sched.Suspended:
		delete(w.stopping, e.Job)
		delete(w.halting, e.Job)
		w.parked[e.Job] = w.book.Held[e.Job].Claims
	}
}

func (w *world) decide(t *rapid.T, d sched.Decision) {
	switch d := d.(type) {
	case sched.Start:
		q := w.queue[d.Job]
		if q == nil || q.blocked {
			t.Fatalf("job %d starts and is not waiting to", d.Job)
		}
		if broken := w.exceeded(t, q.Spec, d); len(broken) > 0 {
			t.Fatalf("job %d starts and exceeds %v\n%s", d.Job, broken, encode(d))
		}
		if w.below != nil && w.below(q.Spec) {
			t.Fatalf("job %d starts, and its fair share is too small", d.Job)
		}
		w.respects(t, d, q.Spec)
		if err := w.book.Start(d, q.Spec); err != nil {
			t.Fatalf("%v\n%s", err, encode(d))
		}
		until := sched.Instant(0)
		if q.Spec.TimeLimit > 0 {
			until = w.now + sched.Instant(q.Spec.TimeLimit)
		}
		if least := q.Spec.TimeMin; least > 0 && d.Until < until && d.Until >= w.now+sched.Instant(least) {
			until = d.Until
		}
		if least := q.Spec.TimeMin; q.Spec.Endless() && d.Until >= w.now+sched.Instant(least) {
			until = d.Until // an end was granted
		}
		if q.Spec.Reservation != "" && d.Until > 0 && (until == 0 || d.Until < until) {
			until = d.Until // it ends with its reservation
		}
		if d.Until != until {
			t.Fatalf("job %d: ends at %d, its limit says %d", d.Job, d.Until, until)
		}
		if why := w.core.Feasible(q.Spec); why != nil {
			t.Fatalf("job %d starts and is said to be infeasible: %v", d.Job, why)
		}
		h := w.book.Held[d.Job]
		h.Priority = q.Priority
		w.book.Held[d.Job] = h
		delete(w.queue, d.Job)
		w.oracle = nil
		w.started[d.Job], w.base[d.Job] = w.now, len(d.Claims)
		if w.promised.Job == d.Job {
			w.promised = sched.Promise{}
		}
	case sched.Preempt:
		if d.Home != nil {
			w.moves(t, d)
			return
		}
		w.preempted(t, d)
	case sched.Resume:
		w.resumed(t, d.Job)
	case sched.Proposal:
		w.proposal = d
	case sched.Grow:
		w.grown(t, d)
	case sched.Shrink:
		w.shrunk(t, d)
	case sched.Wait:
		q := w.queue[d.Job]
		if q == nil || d.Why.Code == reason.None {
			t.Fatalf("a word for nobody or of nothing: %+v", d)
		}
		if old := q.told; old.Code == d.Why.Code && (old.Need == d.Why.Need || old.Code != reason.NodeCount) && old.Resource == d.Why.Resource && old.Job == d.Why.Job && old.Want == d.Why.Want && old.Holder == d.Why.Holder && old.Until == d.Why.Until {
			t.Fatalf("job %d is told twice that it waits for %+v", d.Job, d.Why)
		}
		q.told = d.Why
	case sched.Promise:
		if encode(d) == nil || string(encode(d)) == string(encode(w.promised)) {
			t.Fatalf("promised twice: %+v", d)
		}
		w.promised = d
	}
}

// line lists the jobs that may be considered, in queue order.
func (w *world) line() []*waiting {
	var out []*waiting
	for _, q := range w.queue {
		if !q.blocked && q.told.Code != reason.Preempting {
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(a, b *waiting) int {
		if w.compare != nil {
			return w.compare(a, b)
		}
		return cmp.Or(cmp.Compare(w.tier(b.Spec), w.tier(a.Spec)), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.At, b.At), cmp.Compare(a.Job, b.Job))
	})
	return out
}

func (w *world) check(t *rapid.T) {
	w.oracle = nil
	if err := w.core.Check(); err != nil {
		t.Fatal(err)
	}
	defer w.hold(t)()
	w.checkElastic(t)
	w.core.Shares() // it counts what runs, places kept for those who move among it
	named, _ := w.core.Named()
	if named {
		w.checkNamed(t)
		return
	}
	var head *waiting
	for _, q := range w.line() {
		if w.book.FitsEmpty(q.Spec, false) && !w.limited(t, q) {
			head = q
			break
		}
	}
	if head != nil && w.book.Fits(head.Spec) {
		t.Fatalf("the head, job %d, fits now and was not started\n%s", head.Job, encode([]any{w.book, head.Spec}))
	}
	if head == nil && w.promised.Job != 0 && w.queue[w.promised.Job] != nil && len(w.promised.Nodes) > 0 {
		t.Fatalf("nobody leads the queue and job %d has a promise", w.promised.Job)
	}
	if head != nil && (w.promised.Job != head.Job || len(w.promised.Nodes) == 0) {
		t.Fatalf("the head, job %d, has no promise; the last one is %+v", head.Job, w.promised)
	}
	for _, q := range w.line() {
		ends := w.now + sched.Instant(q.Spec.TimeLimit)
		if least := q.Spec.TimeMin; least > 0 {
			ends = min(ends, w.now+sched.Instant(least))
		}
		if q != head && q.Spec.TimeLimit > 0 && (w.promised.At == 0 || ends <= w.promised.At) && w.book.Fits(q.Spec) && !w.limited(t, q) {
			t.Fatalf("job %d fits, would end before the head starts, and was not started", q.Job)
		}
	}
	for id, q := range w.queue {
		all := w.core.Reasons(w.now, id)
		if len(all) == 0 || q.told.Code == reason.None {
			t.Fatalf("job %d waits without a reason (%v, told %v)", id, all, q.told)
		}
		if q.told.Code == reason.Reserved && !q.blocked && (head == nil || q.told.Job != uint64(head.Job) || q == head) {
			t.Fatalf("job %d is told that it waits for what is reserved for job %d, and the head is %+v", id, q.told.Job, head)
		}
	}
	if w.submitted != len(w.queue)+len(w.book.Held)-w.core.Reserved()+w.ended {
		t.Fatalf("%d jobs were submitted, %d wait, %d run, %d ended", w.submitted, len(w.queue), len(w.book.Held), w.ended)
	}
	if kept, anew := w.core.Replan(w.now); anew < kept {
		t.Fatalf("the plan is late: %d, made anew %d", kept, anew)
	}
	// A head that waits for a job without a limit has no instant: what is beside it
	// then depends on which of these is taken to end first, and that on who runs.
	if head != nil && w.promised.At == 0 {
		return
	}
	if out := w.core.Recheck(w.now); len(out) > 0 {
		t.Fatalf("a second look at the same state decides %s", encode(out))
	}
}

// reload puts a core that was read from a file in the place of this one.
func (w *world) reload(t *rapid.T) {
	var b bytes.Buffer
	if err := (&snapshot.File{State: w.core.Snapshot().Sort()}).Write(&b, ""); err != nil {
		t.Fatal(err)
	}
	f, err := snapshot.Read(&b, "it")
	if err != nil {
		t.Fatal(err)
	}
	w.core = sched.Load(f.State)
	if err := w.core.Check(); err != nil {
		t.Fatalf("loaded: %v", err)
	}
}

// checkNamed is check where several starts are planned node by node.
func (w *world) checkNamed(t *rapid.T) {
	planned := map[job.ID]bool{}
	for i, p := range w.core.Planned() {
		planned[p.Job] = true
		if i == 0 && len(p.Nodes) == 0 && len(w.core.Planned()) == 1 {
			t.Fatalf("the head, job %d, has no nodes", p.Job)
		}
	}
	for id, q := range w.queue {
		all := w.core.Reasons(w.now, id)
		if len(all) == 0 || q.told.Code == reason.None {
			t.Fatalf("job %d waits without a reason (%v, told %v)", id, all, q.told)
		}
		if q.told.Code == reason.Reserved && !q.blocked && (!planned[job.ID(q.told.Job)] || job.ID(q.told.Job) == id) {
			t.Fatalf("job %d is told that it waits for what is reserved for job %d, which has nothing", id, q.told.Job)
		}
	}
	if w.submitted != len(w.queue)+len(w.book.Held)-w.core.Reserved()+w.ended {
		t.Fatalf("%d jobs were submitted, %d wait, %d run, %d ended", w.submitted, len(w.queue), len(w.book.Held), w.ended)
	}
	if id, kept, slowly := w.core.Timetable(); id != 0 {
		t.Fatalf("job %d is planned for %d, looked for slowly: %d\n%+v", id, kept, slowly, w.core.Planned())
	}
	for _, id := range w.core.Idle() {
		t.Fatalf("job %d could start and be in nobody's way\n%+v", id, w.core.Planned())
	}
	for _, id := range w.core.Shortened() {
		t.Fatalf("job %d could start with a shorter limit and be in nobody's way\n%+v", id, w.core.Planned())
	}
	before := w.core.Planned()
	_, passed := w.core.Named()
	if out := w.core.Recheck(passed); len(out) > 0 || string(encode(before)) != string(encode(w.core.Planned())) {
		t.Fatalf("a second look at the same state decides %s and plans %+v, it was %+v", encode(out), w.core.Planned(), before)
	}
}

// encode writes decisions with their types, as a journal would.
func encode(x any) []byte {
	if all, ok := x.([]sched.Decision); ok {
		var typed []any
		for _, d := range all {
			typed = append(typed, fmt.Sprintf("%T", d), d)
		}
		x = typed
	}
	b, err := json.Marshal(x)
	if err != nil {
		panic(err)
	}
	return b
}

// some draws an element of a map with ordered keys; false if it is empty.
func some[V any](t *rapid.T, m map[job.ID]V, label string) (job.ID, bool) {
	if len(m) == 0 {
		return 0, false
	}
	ids := make([]job.ID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return rapid.SampledFrom(ids).Draw(t, label), true
}

// forms lists what a job with wishes may start as now.
func (w *world) forms(spec *job.Spec) (out []*job.Spec) {
	longest, since := job.DefaultSwitchWait, int64(w.now)/int64(time.Second)
	if w.policy != nil && w.policy.Topology.SwitchWait > 0 {
		longest = time.Duration(w.policy.Topology.SwitchWait)
	}
	for _, q := range w.queue {
		if q.Spec == spec && !q.blocked {
			since = q.since
		}
	}
	for _, f := range spec.Forms(longest) {
		if sched.Instant(f.After) <= w.now-sched.Instant(since)*sched.Instant(time.Second) || f.After == 0 {
			out = append(out, f.Spec)
		}
	}
	return out
}

func (w *world) submit(t *rapid.T) []sched.Event {
	var out []sched.Event
	for range rapid.IntRange(1, 3).Draw(t, "jobs") {
		w.next++
		w.submitted++
		spec := schedtest.Spec(t)
		schedtest.Whose(t, spec)
		schedtest.Wish(t, spec)
		if w.policy != nil && len(w.policy.Reservations) > 0 && rapid.IntRange(0, 2).Draw(t, "inside") == 0 {
			spec.Reservation = rapid.SampledFrom([]string{"r", "s"}).Draw(t, "reservation")
		}
		w.rank(t, spec)
		if w.elastic && rapid.IntRange(0, 3).Draw(t, "elastic") > 0 {
			spec.Groups, spec.Within, spec.Wish = []job.TaskGroup{schedtest.Elastic(t)}, 0, job.Wish{}
		}
		if why, fits := w.core.Feasible(spec), w.book.FitsEmpty(spec, true); (why == nil) != fits {
			t.Fatalf("job %d: infeasible because of %v, and %v that an empty fleet takes it", w.next, why, fits)
		}
		out = append(out, sched.Submitted{
			Job: w.next, Spec: spec, At: w.now,
			Priority: int64(rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "priority")),
		})
	}
	return out
}

func (w *world) release(t *rapid.T) []sched.Event {
	id, ok := some(t, w.book.Held, "ends")
	if !ok {
		return nil
	}
	w.ended++
	return []sched.Event{sched.Released{Job: id}}
}

func (w *world) node(t *rapid.T) []sched.Event {
	name := fmt.Sprintf("n%d", rapid.IntRange(1, 4).Draw(t, "node"))
	n, known := w.book.Nodes[name]
	switch rapid.IntRange(0, 4).Draw(t, "change") {
	case 0:
		return []sched.Event{sched.NodeRemoved{Pool: n.Pool, Name: name}}
	case 1:
		if known && w.idle(name) {
			set := sched.NodeSet{Node: schedtest.Node(t, name)}
			if n.Pool != set.Node.Pool { // its machine changes the pool
				return []sched.Event{sched.NodeRemoved{Pool: n.Pool, Name: name}, set}
			}
			return []sched.Event{set}
		}
	}
	if !known {
		return []sched.Event{sched.NodeSet{Node: schedtest.Node(t, name)}}
	}
	n.State = rapid.SampledFrom([]fleet.NodeState{fleet.Up, fleet.Down, fleet.Draining, fleet.Unknown}).Draw(t, "state")
	return []sched.Event{sched.NodeSet{Node: n}}
}

func (w *world) idle(node string) bool {
	for _, h := range w.book.Held {
		if slices.ContainsFunc(h.Claims, func(c fleet.Claim) bool { return c.Node == node }) {
			return false
		}
	}
	return true
}
