package sched_test

import (
	"bytes"
	"cmp"
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
	"github.com/coxswain-sched/coxswain/sched/quota"
	"github.com/coxswain-sched/coxswain/sched/schedtest"
)

// quotaWorld drives a core with quotas and counts beside it what is held of them.
type quotaWorld struct {
	core    *sched.Core
	policy  *account.Policy
	book    *schedtest.Book
	flavors map[job.ID][]string // of what runs
	now     sched.Instant
	queue   map[job.ID]*waiting
	next    job.ID
	log     []entry

	leaving map[job.ID]*job.Spec // whose end was asked for
	placed  map[job.ID]bool      // waiting jobs for which something is held until others have gone

	limited bool // accounts have limits too, and what is asked back is looked at more closely
	elastic bool // some jobs are
	begun   map[job.ID]bool
	base    map[job.ID][]fleet.Claim // what elastic ones started with
	added   map[job.ID][]addition    // and what they were given since
}

func newQuotaWorld(t *rapid.T, limited bool) *quotaWorld {
	w := &quotaWorld{
		core: sched.New(sched.Config{}), book: schedtest.NewBook(), flavors: map[job.ID][]string{},
		queue: map[job.ID]*waiting{}, now: sched.Instant(time.Hour), leaving: map[job.ID]*job.Spec{},
		begun: map[job.ID]bool{}, base: map[job.ID][]fleet.Claim{}, added: map[job.ID][]addition{},
	}
	w.limited = limited
	w.elastic = limited || rapid.IntRange(0, 2).Draw(t, "elastic jobs") == 0
	events := []sched.Event{sched.PolicySet{Policy: w.draw(t)}}
	for _, n := range schedtest.Nodes(t) {
		events = append(events, sched.NodeSet{Node: n})
	}
	w.step(t, events...)
	return w
}

func (w *quotaWorld) draw(t *rapid.T) *account.Policy {
	p := &account.Policy{}
	p.Flavors, p.Accounts = schedtest.Quotas(t)
	if w.limited {
		schedtest.Lending(t, p)
	}
	if rapid.Bool().Draw(t, "preemption") {
		p.Preemption.By = []string{"quota"}
	}
	return p
}

func (w *quotaWorld) step(t *rapid.T, events ...sched.Event) {
	for _, e := range events {
		w.apply(e)
	}
	out := w.core.Step(w.now, events...)
	w.log = append(w.log, entry{w.now, events, encode(out)})
	w.place(out)
	for _, d := range out {
		w.decide(t, d)
	}
	w.check(t)
}

// place notes for whom something is held, before the decisions of a step are looked at.
// Those for whom others are asked to go in this step follow when that is looked at.
func (w *quotaWorld) place(out []sched.Decision) {
	w.placed = map[job.ID]bool{}
	w.core.Nominated(func(id job.ID, _ []fleet.Claim) { w.placed[id] = true })
	for _, d := range out {
		switch d := d.(type) {
		case sched.Preempt:
			delete(w.placed, d.For)
		case sched.Shrink:
			delete(w.placed, d.For)
		}
	}
}

func (w *quotaWorld) apply(e sched.Event) {
	switch e := e.(type) {
	case sched.NodeSet:
		w.book.Nodes[e.Node.Name] = e.Node
	case sched.NodeRemoved:
		delete(w.book.Nodes, e.Name)
	case sched.PolicySet:
		w.policy = e.Policy
	case sched.Submitted:
		old := w.queue[e.Job]
		w.queue[e.Job] = &waiting{Submitted: e}
		if old != nil {
			w.queue[e.Job].told = old.told
		}
	case sched.Withdrawn:
		delete(w.queue, e.Job)
	case sched.Blocked:
		w.queue[e.Job].blocked = true
	case sched.Unblocked:
		w.queue[e.Job].blocked = false
	case sched.Released:
		delete(w.book.Held, e.Job)
		delete(w.flavors, e.Job)
		delete(w.leaving, e.Job)
		delete(w.begun, e.Job)
		delete(w.added, e.Job)
	case sched.Begun:
		w.begun[e.Job] = true
	case sched.Dropped:
		h := w.book.Held[e.Job]
		w.added[e.Job] = slices.DeleteFunc(slices.Clone(w.added[e.Job]), func(a addition) bool {
			if a.claims[0].Node != e.Node {
				return false
			}
			h.Claims = minus(h.Claims, a.claims)
			return true
		})
		w.book.Held[e.Job] = h
	}
}

// grown checks what a running job is given: it stays in its flavours, and its account may
// hold or borrow it.
func (w *quotaWorld) grown(t *rapid.T, d sched.Grow) {
	h, ok := w.book.Held[d.Job]
	if !ok || !w.begun[d.Job] || w.leaving[d.Job] != nil {
		t.Fatalf("job %d is given more and may not grow", d.Job)
	}
	if s := w.counts(t); s != nil {
		w.allowed(t, s, sched.Start{Job: d.Job, Claims: d.Claims, Flavors: w.flavors[d.Job]}, &waiting{Submitted: sched.Submitted{Job: d.Job, Spec: h.Spec}, told: reason.Reason{Code: reason.Preempting}})
	}
	if err := w.book.Add(d.Job, d.Claims); err != nil {
		t.Fatalf("%v\n%s", err, encode(d))
	}
	w.added[d.Job] = append(w.added[d.Job], addition{claims: d.Claims})
}

// shrunk notes what is asked back: something that was added, once.
func (w *quotaWorld) shrunk(t *rapid.T, d sched.Shrink) {
	i := slices.IndexFunc(w.added[d.Job], func(a addition) bool { return a.claims[0].Node == d.Node })
	if i < 0 || w.added[d.Job][i].stopping || w.queue[d.For] == nil {
		t.Fatalf("what was not added is asked back, or for nobody: %s", encode(d))
	}
	if w.limited && !w.placed[d.For] {
		w.inTurn(t, w.queue[d.For])
	}
	w.placed[d.For] = true
	w.added[d.Job][i].stopping = true
}

// inTurn checks that a job for which something is asked back goes first in its queue, if
// that is strict.
func (w *quotaWorld) inTurn(t *rapid.T, q *waiting) {
	tree, err := quota.New(w.policy)
	if err != nil || tree == nil {
		return
	}
	n := w.queueOf(tree, q.Spec)
	if n == quota.None || !tree.Strict(n) {
		return
	}
	for _, o := range w.queue {
		if o.Job != q.Job && !o.blocked && !w.placed[o.Job] && w.queueOf(tree, o.Spec) == n && before(o, q) && w.book.FitsEmpty(o.Spec, false) {
			t.Fatalf("job %d takes back before job %d, which is before it in the strict queue of %s\n%s", q.Job, o.Job, tree.Names[n], w.log[len(w.log)-1].out)
		}
	}
}

// drop lets something go that was asked back.
func (w *quotaWorld) drop(t *rapid.T) (out []sched.Event) {
	id, ok := some(t, w.added, "job")
	if !ok {
		return nil
	}
	for _, a := range w.added[id] {
		if a.stopping && len(out) == 0 {
			out = append(out, sched.Dropped{Job: id, Node: a.claims[0].Node})
		}
	}
	return out
}

// begin lets those begin that were started.
func (w *quotaWorld) begin() (out []sched.Event) {
	for _, id := range slices.Sorted(maps.Keys(w.book.Held)) {
		if !w.begun[id] && w.book.Held[id].Spec.Elastic() {
			out = append(out, sched.Begun{Job: id})
		}
	}
	return out
}

// counts is what is held of the quotas, counted anew.
func (w *quotaWorld) counts(t *rapid.T) *quota.State {
	tree, err := quota.New(w.policy)
	if err != nil {
		t.Fatal(err)
	}
	if tree == nil {
		return nil
	}
	s := tree.NewState()
	for id, h := range w.book.Held {
		if n := w.queueOf(tree, h.Spec); n != quota.None {
			s.Add(n, w.charges(tree, n, h.Claims, w.flavors[id]))
		}
	}
	return s
}

func (w *quotaWorld) queueOf(tree *quota.Tree, spec *job.Spec) int32 {
	for name := spec.Account; name != ""; {
		if n := tree.Find(name); n != quota.None {
			return n
		}
		i := slices.IndexFunc(w.policy.Accounts, func(a account.Account) bool { return a.Name == name })
		if i < 0 {
			break
		}
		name = w.policy.Accounts[i].Parent
	}
	return quota.None
}

// charges reads off claims what they count for: each resource that the account's
// quota has, in the flavour of the job that has it.
func (w *quotaWorld) charges(tree *quota.Tree, n int32, claims []fleet.Claim, flavors []string) (out []quota.Charge) {
	for fr, x := range tree.FRs {
		of := slices.IndexFunc(tree.Rules(n).Flavors, func(f account.FlavorQuota) bool { return f.Flavor == tree.Flavors[x.Flavor].Name })
		if of < 0 || !slices.Contains(flavors, tree.Flavors[x.Flavor].Name) ||
			!slices.ContainsFunc(tree.Rules(n).Flavors[of].Resources, func(r account.ResourceQuota) bool { return r.Name == tree.Resources[x.Resource] }) {
			continue
		}
		sum := resource.Amount(0)
		for _, c := range claims {
			if tree.Resources[x.Resource] == "cpu" {
				sum += c.Take.CPU
				continue
			}
			for _, d := range c.Devices {
				sum += resource.Amount(d.Share)
			}
		}
		if sum > 0 {
			out = append(out, quota.Charge{FR: int32(fr), Amount: sum})
		}
	}
	return out
}

func (w *quotaWorld) decide(t *rapid.T, d sched.Decision) {
	switch d := d.(type) {
	case sched.Start:
		q := w.queue[d.Job]
		if q == nil || q.blocked {
			t.Fatalf("job %d starts and is not waiting to", d.Job)
		}
		if s := w.counts(t); s != nil {
			w.allowed(t, s, d, q)
		}
		if err := w.book.Start(d, q.Spec); err != nil {
			t.Fatalf("%v\n%s", err, encode(d))
		}
		delete(w.queue, d.Job)
		w.flavors[d.Job], w.base[d.Job] = d.Flavors, d.Claims
	case sched.Grow:
		w.grown(t, d)
	case sched.Shrink:
		w.shrunk(t, d)
	case sched.Preempt:
		h, ok := w.book.Held[d.Job]
		if !ok || w.leaving[d.Job] != nil {
			t.Fatalf("job %d is stopped, and it does not run or was stopped already", d.Job)
		}
		if !w.policyTakes() {
			t.Fatalf("job %d is stopped, and nobody may be", d.Job)
		}
		w.leaving[d.Job], w.placed[d.For] = h.Spec, true
		for i := range w.added[d.Job] {
			w.added[d.Job][i].stopping = true
		}
	case sched.Wait:
		q := w.queue[d.Job]
		if q == nil || d.Why.Code == reason.None {
			t.Fatalf("a word for nobody or of nothing: %+v", d)
		}
		q.told = d.Why
	}
}

func (w *quotaWorld) policyTakes() bool { return len(w.policy.Preemption.By) > 0 }

// allowed checks what the quotas say of a start.
func (w *quotaWorld) allowed(t *rapid.T, s *quota.State, d sched.Start, q *waiting) {
	n := w.queueOf(s.Tree, q.Spec)
	if n == quota.None {
		return
	}
	charges := w.charges(s.Tree, n, d.Claims, d.Flavors)
	if !s.Fits(n, charges) {
		t.Fatalf("job %d starts in %v and takes %v of account %s, which has not so much", d.Job, d.Flavors, charges, q.Spec.Account)
	}
	for _, name := range d.Flavors {
		i := slices.IndexFunc(w.policy.Flavors, func(f account.Flavor) bool { return f.Name == name })
		if i < 0 {
			continue // what runs may have started in one that the rules knew then
		}
		for _, c := range d.Claims {
			for _, x := range w.policy.Flavors[i].Features {
				if !slices.Contains(w.book.Nodes[c.Node].Features, x) {
					t.Fatalf("job %d starts in flavor %s on node %s, which is none", d.Job, name, c.Node)
				}
			}
		}
	}
	if !s.Strict(n) || q.told.Code == reason.Preempting {
		return
	}
	for _, o := range w.queue {
		if o.Job != d.Job && !o.blocked && !w.placed[o.Job] && w.queueOf(s.Tree, o.Spec) == n && before(o, q) && w.book.FitsEmpty(o.Spec, false) {
			t.Fatalf("job %d starts before job %d, which is before it in the strict queue of %s\n%s\n%s", d.Job, o.Job, s.Names[n], w.log[len(w.log)-1].out, encode([]any{w.policy, w.book, o, q}))
		}
	}
}

func before(a, b *waiting) bool {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.At, b.At), cmp.Compare(a.Job, b.Job)) < 0
}

func (w *quotaWorld) check(t *rapid.T) {
	if err := w.core.Check(); err != nil {
		t.Fatal(err)
	}
	for id, q := range w.queue {
		if all := w.core.Reasons(w.now, id); len(all) == 0 || q.told.Code == reason.None {
			t.Fatalf("job %d waits without a reason (%v, told %v)", id, all, q.told)
		}
	}
	out := w.core.Recheck(w.now)
	if w.policyTakes() || w.limited {
		// Known bound (with limits, one of its account as well): a gang of several groups that takes whole nodes may be found
		// beyond its quota on one look and without room on the next, which then plans
		// for it. What starts is the same.
		out = slices.DeleteFunc(out, func(d sched.Decision) bool { _, ok := d.(sched.Promise); return ok })
	}
	if len(out) > 0 {
		t.Fatalf("a second look at the same state decides %s\n%s\n%s", encode(out), w.log[len(w.log)-1].out, encode([]any{w.policy, w.book, w.queue}))
	}
}

func (w *quotaWorld) submit(t *rapid.T) (out []sched.Event) {
	for range rapid.IntRange(1, 3).Draw(t, "jobs") {
		w.next++
		spec := schedtest.Spec(t)
		if w.elastic && rapid.Bool().Draw(t, "elastic") {
			spec.Groups, spec.Within = []job.TaskGroup{schedtest.Elastic(t)}, 0
		}
		spec.TimeLimit = time.Duration(rapid.IntRange(1, 20).Draw(t, "limit")) * time.Second
		spec.Account = rapid.SampledFrom([]string{"", "q0", "q0", "q1", "q1", "q2", "q2", "q3", "q4", "q5"}).Draw(t, "account")
		out = append(out, sched.Submitted{Job: w.next, Spec: spec, At: w.now, Priority: int64(rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "priority"))})
	}
	return out
}

func (w *quotaWorld) release(t *rapid.T) []sched.Event {
	if id, ok := some(t, w.book.Held, "ends"); ok {
		return []sched.Event{sched.Released{Job: id}}
	}
	return nil
}

// restart puts a new core in the place of the old one and tells it the state.
func (w *quotaWorld) restart(t *rapid.T) {
	var events []sched.Event
	for _, n := range w.book.Nodes {
		events = append(events, sched.NodeSet{Node: n})
	}
	events = append(events, sched.PolicySet{Policy: w.policy})
	for id, h := range w.book.Held {
		events = append(events, sched.Restored{Job: id, Spec: h.Spec, Claims: w.base[id], Until: h.Until, License: h.License, Flavors: w.flavors[id], Stopping: w.leaving[id] != nil, Begun: w.begun[id]})
		for _, a := range w.added[id] {
			events = append(events, sched.Added{Job: id, Claims: a.claims, Stopping: a.stopping})
		}
	}
	for id, q := range w.queue {
		q.told = reason.Reason{}
		events = append(events, q.Submitted)
		if q.blocked {
			events = append(events, sched.Blocked{Job: id, Why: reason.Reason{Code: reason.HeldUser}})
		}
	}
	w.core, w.log = sched.New(sched.Config{}), nil
	w.step(t, events...)
}

// replay gives the same events to a new core.
func (w *quotaWorld) replay(t *rapid.T) {
	c := sched.New(sched.Config{})
	for i, e := range w.log {
		if out := encode(c.Step(e.now, e.events...)); !bytes.Equal(out, e.out) {
			t.Fatalf("step %d decided\n%s\nand when replayed\n%s", i, e.out, out)
		}
	}
}

// TestQuotaLaws lets anything happen in any order under random trees of quotas and
// checks after every step:
//
//   - no start takes more than its account may hold or borrow, counted anew from the
//     claims of all that runs;
//   - a job runs on nodes of the flavours that it is counted in;
//   - nothing of a strict queue passes its first job that the fleet could take, of those
//     for which nothing is held yet;
//   - every wait has a reason;
//   - what running jobs are given is in their flavours and within their accounts' quotas,
//     and only that is asked back;
//   - nobody is stopped but where the site preempts by quota, and nobody twice;
//   - a second look at the state with nothing remembered starts and stops nothing, and
//     without preemption plans nothing else;
//   - the core's own invariants.
//
// The same events give a new core the same decisions.
func TestQuotaLaws(t *testing.T) { quotaLaws(t, false) }

// TestQuotaLawsLent is TestQuotaLaws where accounts have limits too, many jobs are elastic
// and some trees are fair or strict: beside those laws, what is asked back for a job of a
// strict queue is so for its first one.
func TestQuotaLawsLent(t *testing.T) { quotaLaws(t, true) }

func quotaLaws(t *testing.T, limited bool) {
	rapid.Check(t, func(t *rapid.T) {
		w := newQuotaWorld(t, limited)
		t.Repeat(map[string]func(*rapid.T){
			"submit":         func(t *rapid.T) { w.step(t, w.submit(t)...) },
			"submit more":    func(t *rapid.T) { w.step(t, w.submit(t)...) },
			"end":            func(t *rapid.T) { w.step(t, w.release(t)...) },
			"end and submit": func(t *rapid.T) { w.step(t, append(w.release(t), w.submit(t)...)...) },
			"time": func(t *rapid.T) {
				w.now += sched.Instant(rapid.IntRange(1, 5).Draw(t, "seconds")) * sched.Instant(time.Second)
				w.step(t)
			},
			"block": func(t *rapid.T) {
				if id, ok := some(t, w.queue, "job"); ok {
					w.step(t, sched.Blocked{Job: id, Why: reason.Reason{Code: reason.HeldUser}})
				}
			},
			"unblock": func(t *rapid.T) {
				if id, ok := some(t, w.queue, "job"); ok {
					w.step(t, sched.Unblocked{Job: id})
				}
			},
			"withdraw": func(t *rapid.T) {
				if id, ok := some(t, w.queue, "job"); ok {
					w.step(t, sched.Withdrawn{Job: id})
				}
			},
			"priority": func(t *rapid.T) {
				if id, ok := some(t, w.queue, "job"); ok {
					s := w.queue[id].Submitted
					s.Priority++
					w.step(t, s)
				}
			},
			"policy": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "other") == 0 {
					w.step(t, sched.PolicySet{Policy: w.draw(t)})
				}
			},
			"node": func(t *rapid.T) {
				n := w.book.Nodes["n1"]
				n.State = rapid.SampledFrom([]fleet.NodeState{fleet.Up, fleet.Down}).Draw(t, "state")
				w.step(t, sched.NodeSet{Node: n})
			},
			"stopped": func(t *rapid.T) {
				if id, ok := some(t, w.leaving, "job"); ok {
					spec := w.leaving[id]
					w.step(t, sched.Released{Job: id}, sched.Submitted{Job: id, Spec: spec, At: w.now})
				}
			},
			"restart": w.restart,
			"begin":   func(t *rapid.T) { w.step(t, w.begin()...) },
			"dropped": func(t *rapid.T) { w.step(t, w.drop(t)...) },
		})
		w.replay(t)
	})
}
