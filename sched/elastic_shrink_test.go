package sched_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// nodesOf8 is a fleet of so many nodes of eight CPUs.
func nodesOf8(n int) (out []sched.Event) {
	for i := range n {
		out = append(out, sched.NodeSet{Node: fleet.Node{Name: fmt.Sprintf("n%d", i+1), State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8)}}})
	}
	return out
}

// stretchy is a job of some nodes of eight CPUs each, of an account; most: it is elastic.
func stretchy(acct string, nodes, most int) *job.Spec {
	g := job.TaskGroup{Nodes: job.Range{Min: nodes, Max: max(nodes, most)}, TasksPerNode: 1, Elastic: most > nodes}
	if most <= nodes {
		g.Tasks = job.Count{Want: nodes}
	}
	g.PerTask.CPU = resource.CPUs(8)
	return &job.Spec{Account: acct, Requeue: true, Groups: []job.TaskGroup{g}}
}

// TestWhatCountsIsGivenBack: on a fleet with room for everybody an elastic job has grown
// as far as the limit of its account, or the quota that it shares with another one, goes.
// A job that comes takes back as much of that as it needs, waits until it is gone, and
// the elastic job is given none of it meanwhile. One that would not pass without all that
// was lent takes nothing.
//
// Seen to fail without recalls, and, for quotas, with growth that does not look at what
// will be held once those who make room have gone.
func TestWhatCountsIsGivenBack(t *testing.T) {
	const second = sched.Instant(time.Second)
	cpus := func(n int) account.TRES { return account.TRES{"cpu": resource.CPUs(n)} }
	for _, c := range []struct {
		name string
		p    *account.Policy
	}{
		{"limit", &account.Policy{Accounts: []account.Account{{Name: "a", Limits: account.Limits{Group: cpus(40)}}}}},
		{"limit by name", &account.Policy{Accounts: []account.Account{{Name: "a", Limits: account.Limits{Group: cpus(40)}}}, Backfill: account.Backfill{Reservations: 2}}},
		{"quota", &account.Policy{
			Flavors:  []account.Flavor{{Name: "f"}},
			Accounts: []account.Account{{Name: "a", Quota: &account.Quota{Flavors: []account.FlavorQuota{{Flavor: "f", Resources: []account.ResourceQuota{{Name: "cpu", Nominal: resource.CPUs(40)}}}}}}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			core := sched.New(sched.Config{})
			step := func(at int, events ...sched.Event) (back []string, more, starts int) {
				t.Helper()
				for _, d := range core.Step(sched.Instant(at)*second, events...) {
					switch d := d.(type) {
					case sched.Shrink:
						back = append(back, d.Node)
					case sched.Grow:
						more++
					case sched.Start:
						starts++
					}
				}
				if err := core.Check(); err != nil {
					t.Fatal(err)
				}
				return back, more, starts
			}
			step(1, append(nodesOf8(16), sched.PolicySet{Policy: c.p}, sched.Submitted{Job: 1, Spec: stretchy("a", 2, 10), At: second})...)
			if _, more, _ := step(2, sched.Begun{Job: 1}); more != 3 {
				t.Fatalf("the first job was given %d nodes, want 3", more)
			}
			if back, _, _ := step(3, sched.Submitted{Job: 2, Spec: stretchy("a", 4, 0), At: 3 * second}); len(back) > 0 {
				t.Fatalf("%v are asked back for a job that would not pass all the same", back)
			}
			back, more, _ := step(4, sched.Submitted{Job: 3, Spec: stretchy("a", 2, 0), At: 4 * second})
			if len(back) != 2 || more != 0 {
				t.Fatalf("%v are asked back, %d given, want two back", back, more)
			}
			if r := core.Reasons(4*second, 3); len(r) == 0 || r[0].Code != reason.Preempting || r[0].Job != 1 {
				t.Errorf("job 3 waits for %+v", r)
			}
			if again, more, starts := step(5, sched.Dropped{Job: 1, Node: back[0]}); len(again)+more+starts > 0 {
				t.Fatalf("when one of two is gone %v are asked back, %d given, %d start", again, more, starts)
			}
			if again, more, starts := step(6, sched.Dropped{Job: 1, Node: back[1]}); len(again)+more > 0 || starts != 1 {
				t.Fatalf("when both are gone %v are asked back, %d given, %d start", again, more, starts)
			}
			if again, more, starts := step(7, sched.Released{Job: 3}); len(again)+starts > 0 || more != 2 {
				t.Fatalf("afterwards %v are asked back, %d given, %d start", again, more, starts)
			}
			_, _, _ = step(8, sched.Withdrawn{Job: 2})
		})
	}
}

// TestBeyondManyOccurrences: a start is planned for when the last node it needs becomes
// free, though a reservation that comes again each hour has many occurrences until then.
//
// Seen to fail (nothing is promised) where only the next occurrences were looked at.
func TestBeyondManyOccurrences(t *testing.T) {
	const second = sched.Instant(time.Second)
	p := &account.Policy{Reservations: []account.Reservation{{
		Name: "s", Nodes: []string{"n1"}, Start: "1970-01-01T00:00:00Z", Duration: account.Duration(time.Second), Every: "hour", Users: []string{"v"},
	}}}
	core := sched.New(sched.Config{})
	end := 103600 * second
	events := append(nodesOf8(2), sched.PolicySet{Policy: p}, sched.Restored{
		Job: 1, Spec: stretchy("a", 1, 0), Claims: []fleet.Claim{{Node: "n2", Tasks: 1, Take: resource.Vector{CPU: resource.CPUs(8)}}}, Until: end, Began: second,
	})
	waits := stretchy("a", 2, 0)
	waits.TimeLimit = 20 * time.Second
	for _, d := range core.Step(3700*second, append(events, sched.Submitted{Job: 2, Spec: waits, At: second})...) {
		if d, ok := d.(sched.Promise); ok && d.Job == 2 && d.At == end {
			return
		}
	}
	t.Errorf("job 2 waits for %+v, and its start at %d is not planned", core.Reasons(3700*second, 2), end)
}

// lentTo steps a core whose job 1 is elastic, with what comes before, and has it grow.
type lentTo struct {
	*testing.T
	core *sched.Core
}

func newLentTo(t *testing.T, nodes int, p *account.Policy, elastic *job.Spec, more ...sched.Event) lentTo {
	w := lentTo{t, sched.New(sched.Config{})}
	first := append(nodesOf8(nodes), sched.PolicySet{Policy: p}, sched.Submitted{Job: 1, Spec: elastic, At: sched.Instant(time.Second)})
	w.step(1, append(first, more...)...)
	w.step(2, sched.Begun{Job: 1})
	return w
}

// step says what is asked back, who starts and who is given something, in a few words.
func (w lentTo) step(at int, events ...sched.Event) (out []string) {
	w.Helper()
	for _, d := range w.core.Step(sched.Instant(at)*sched.Instant(time.Second), events...) {
		switch d := d.(type) {
		case sched.Shrink:
			out = append(out, fmt.Sprintf("shrink %d by %s for %d", d.Job, d.Node, d.For))
		case sched.Grow:
			out = append(out, fmt.Sprintf("grow %d", d.Job))
		case sched.Start:
			out = append(out, fmt.Sprintf("start %d", d.Job))
		}
	}
	if err := w.core.Check(); err != nil {
		w.Fatal(err)
	}
	if again := w.core.Recheck(sched.Instant(at) * sched.Instant(time.Second)); len(again) > 0 {
		w.Fatalf("a second look decides %s", encode(again))
	}
	return out
}

func (w lentTo) expect(at int, events []sched.Event, want ...string) {
	w.Helper()
	if out := w.step(at, events...); !slices.Equal(out, want) {
		w.Errorf("at %d: %q, want %q", at, out, want)
	}
}

func comes(id job.ID, at int, priority int64, spec *job.Spec) sched.Event {
	return sched.Submitted{Job: id, Spec: spec, Priority: priority, At: sched.Instant(at) * sched.Instant(time.Second)}
}

func cpuQuota(n int) *account.Quota {
	return &account.Quota{Flavors: []account.FlavorQuota{{Flavor: "f", Resources: []account.ResourceQuota{{Name: "cpu", Nominal: resource.CPUs(n)}}}}}
}

// TestNobodyTakesBackPastAStrictQueue: in a strict queue only the first job takes back,
// though a limit and not the queue is what keeps those behind it.
//
// Seen to fail (job 3 takes two nodes back) where the queue's order is not asked for.
func TestNobodyTakesBackPastAStrictQueue(t *testing.T) {
	q := cpuQuota(4000)
	q.Order = account.Strict
	p := &account.Policy{
		Flavors:  []account.Flavor{{Name: "f"}},
		Accounts: []account.Account{{Name: "a", Quota: q, Limits: account.Limits{Group: account.TRES{"cpu": resource.CPUs(40)}}}},
	}
	w := newLentTo(t, 16, p, stretchy("a", 2, 10))
	w.expect(3, []sched.Event{comes(2, 3, 0, stretchy("a", 4, 0))}) // never passes
	w.expect(4, []sched.Event{comes(3, 4, 0, stretchy("a", 2, 0))})
	w.expect(5, []sched.Event{sched.Withdrawn{Job: 2}}, "shrink 1 by n3 for 3", "shrink 1 by n4 for 3")
}

// TestTheTreeGivesTheTurnToTakeBack: among queues of one tree it takes back whose turn it
// would be if nothing were lent: the one that borrows nothing before the one of higher
// priority that does. The same starts where nothing is lent.
//
// Seen to fail (the node is taken back for job 3) where the first by priority takes back.
func TestTheTreeGivesTheTurnToTakeBack(t *testing.T) {
	for _, fair := range []bool{true, false} {
		for _, most := range []int{5, 6} {
			t.Run(fmt.Sprintf("fair %v, at most %d", fair, most), func(t *testing.T) {
				p := &account.Policy{
					Flavors: []account.Flavor{{Name: "f"}},
					Accounts: []account.Account{
						{Name: "r", Quota: &account.Quota{Fair: fair}},
						{Name: "a", Parent: "r", Quota: cpuQuota(8)},
						{Name: "b", Parent: "r", Quota: cpuQuota(8)},
						{Name: "c", Parent: "r", Quota: cpuQuota(48)},
					},
				}
				w := newLentTo(t, 16, p, stretchy("c", 5, most), comes(2, 1, 0, stretchy("a", 2, 0)))
				want := "start 4"
				if most == 6 {
					want = "shrink 1 by n8 for 4"
				}
				w.expect(3, []sched.Event{comes(3, 3, 5, stretchy("a", 1, 0)), comes(4, 3, 0, stretchy("b", 1, 0))}, want)
			})
		}
	}
}

// TestTimeLetsTakeBack: minutes become fewer by themselves until a job would pass if
// nothing were lent; the core wants to be asked then, and the job takes back.
//
// Seen to fail (the next instant is 191, when it passes beside what is lent) without
// scheduleLent; the second look in between fails then as well.
func TestTimeLetsTakeBack(t *testing.T) {
	p := &account.Policy{Accounts: []account.Account{{Name: "a", Limits: account.Limits{GroupRunMinutes: account.TRES{"cpu": resource.CPUs(100)}}}}}
	grows := stretchy("a", 1, 3)
	grows.TimeLimit = 4 * time.Minute
	w := newLentTo(t, 16, p, grows)
	waits := stretchy("a", 1, 0)
	waits.TimeLimit = 10 * time.Minute
	w.expect(3, []sched.Event{comes(2, 3, 0, waits)})
	at := int(w.core.Next() / sched.Instant(time.Second))
	if at <= 3 || at > 100 {
		t.Fatalf("it is to be asked again at %d", at)
	}
	for now := 4; now < at; now++ {
		w.expect(now, nil)
	}
	w.expect(at, nil, "shrink 1 by n2 for 2", "shrink 1 by n3 for 2")
}

// TestTakenBackInTheFlavorWithRoom: quota in the first flavour comes free with what is
// given back there, but no node does; the second one has both.
//
// Seen to fail (nothing is taken back) where the flavour is chosen by quota alone.
func TestTakenBackInTheFlavorWithRoom(t *testing.T) {
	amounts := []account.ResourceQuota{{Name: "cpu", Nominal: resource.CPUs(1000)}}
	p := &account.Policy{
		Flavors: []account.Flavor{{Name: "f", Features: []string{"f"}}, {Name: "g", Features: []string{"g"}}},
		Accounts: []account.Account{
			{Name: "a", Quota: &account.Quota{Flavors: []account.FlavorQuota{{Flavor: "f", Resources: amounts}, {Flavor: "g", Resources: amounts}}}, Limits: account.Limits{Group: account.TRES{"cpu": resource.CPUs(24)}}},
			{Name: "b"},
		},
	}
	node := func(name, feature string, cpus int) sched.Event {
		return sched.NodeSet{Node: fleet.Node{Name: name, State: fleet.Up, Features: []string{feature}, Capacity: resource.Vector{CPU: resource.CPUs(cpus)}}}
	}
	wide, other := stretchy("a", 1, 0), stretchy("b", 1, 0)
	wide.Groups[0].PerTask.CPU, other.Groups[0].PerTask.CPU = resource.CPUs(16), resource.CPUs(16)
	held := sched.Restored{Job: 3, Spec: other, Began: 1, Claims: []fleet.Claim{{Node: "f4", Tasks: 1, Take: resource.Vector{CPU: resource.CPUs(16)}}}}
	w := newLentTo(t, 0, p, stretchy("a", 1, 3), node("f1", "f", 8), node("f2", "f", 8), node("f3", "f", 8), node("f4", "f", 16), held, node("g1", "g", 16))
	w.expect(3, []sched.Event{comes(2, 3, 0, wide)}, "shrink 1 by f2 for 2", "shrink 1 by f3 for 2")
}

// BenchmarkRecall is a step in which a job of another account starts or ends, where so
// many classes rest for a limit that so many additions are held under.
func BenchmarkRecall(b *testing.B) {
	for _, c := range []struct{ added, lines, need int }{{0, 1000, 63}, {60, 100, 63}, {60, 1000, 63}, {60, 10000, 63}, {600, 1000, 603}, {60, 1000, 30}} {
		b.Run(fmt.Sprintf("added=%d/lines=%d/nodes=%d", c.added, c.lines, c.need), func(b *testing.B) {
			const second = sched.Instant(time.Second)
			p := &account.Policy{Accounts: []account.Account{{Name: "a", Limits: account.Limits{Group: account.TRES{"cpu": resource.CPUs(8 * (4 + c.added))}}}, {Name: "b"}, {Name: "d"}}}
			core := sched.New(sched.Config{})
			fleet := 2*(4+c.added) + 1
			core.Step(second, append(nodesOf8(fleet), sched.PolicySet{Policy: p}, sched.Submitted{Job: 1, Spec: stretchy("a", 2, 2+c.added), At: second})...)
			core.Step(2*second, sched.Begun{Job: 1})
			var events []sched.Event
			if c.need <= c.added { // they pass without what is lent, and find no node
				events = append(events, sched.Submitted{Job: 2, Spec: stretchy("d", fleet-3-c.added, 0), Priority: 9, At: 2 * second})
				c.need = c.added + 2
			}
			for i := range c.lines {
				s := stretchy("a", c.need, 0)
				s.TimeLimit = time.Hour + time.Duration(i)*time.Second
				events = append(events, sched.Submitted{Job: job.ID(10 + i), Spec: s, At: 2 * second})
			}
			core.Step(2*second, events...)
			now := 3 * second
			for b.Loop() {
				core.Step(now, sched.Submitted{Job: 5, Spec: stretchy("b", 1, 0), At: 3 * second})
				core.Step(now, sched.Released{Job: 5})
			}
		})
	}
}
