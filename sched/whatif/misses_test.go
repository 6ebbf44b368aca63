package whatif_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/whatif"
)

// site is a small fleet with users whose jobs use a part of their limits that nobody knows
// before.
type site struct {
	r       *rand.Rand
	core    *sched.Core
	now     sched.Instant
	last    job.ID
	took    map[job.ID]time.Duration
	spec    map[job.ID]*job.Spec
	ends    ends
	waiting int
	history *whatif.History
	started map[job.ID]sched.Instant
}

type end struct {
	at  sched.Instant
	job job.ID
}

type ends []end

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].job < e[j].job
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

func (s *site) step(events ...sched.Event) {
	for _, d := range s.core.Step(s.now, events...) {
		if d, ok := d.(sched.Start); ok {
			s.started[d.Job] = s.now
			s.waiting--
			heap.Push(&s.ends, end{s.now + sched.Instant(s.took[d.Job]), d.Job})
		}
	}
}

func (s *site) submit() job.ID {
	s.last++
	user := s.r.IntN(5)
	spec := gpus(fmt.Sprint("user", user), 1+s.r.IntN(2), 1+s.r.IntN(8), 60*(1+user))
	s.spec[s.last] = spec
	s.took[s.last] = time.Duration(s.r.Int64N(int64(spec.TimeLimit)*9/10)) + spec.TimeLimit/10
	s.waiting++
	s.step(sched.Submitted{Job: s.last, Spec: spec, At: s.now})
	return s.last
}

// next lets the next running job end.
func (s *site) next() {
	e := heap.Pop(&s.ends).(end)
	s.now = e.at
	s.history.Add("run", s.spec[e.job], s.took[e.job])
	s.step(sched.Released{Job: e.job})
}

// TestFourOfFiveStartsLieInTheInterval: what is told of each job at its submission holds for
// as many as it is to, with run times that nobody knows and a queue that grows and
// shrinks. Seen to fail with an interval between the quartiles.
func TestFourOfFiveStartsLieInTheInterval(t *testing.T) {
	s := &site{
		r: rand.New(rand.NewPCG(3, 4)), core: sched.New(sched.Config{}), now: t0, took: map[job.ID]time.Duration{},
		spec: map[job.ID]*job.Spec{}, history: whatif.NewHistory(), started: map[job.ID]sched.Instant{},
	}
	s.step(sched.NodeSet{Node: node(1)}, sched.NodeSet{Node: node(2)}, sched.NodeSet{Node: node(3)}, sched.NodeSet{Node: node(4)})
	type told struct {
		said, start int64
		whatif.Interval
		known bool
	}
	var misses whatif.Misses
	open := map[job.ID]told{}
	inside, all := 0, 0
	for range 1500 {
		depth := 3 + s.r.IntN(12)
		for s.waiting < depth {
			id := s.submit()
			if s.started[id] != 0 {
				continue
			}
			o := whatif.Run(s.core.Snapshot().Sort(), s.now, &whatif.Change{}, func(_ job.ID, spec *job.Spec, elapsed time.Duration) time.Duration {
				return s.history.Took("run", spec, elapsed)
			}, whatif.Bounds{Until: id})
			for _, j := range o.Jobs {
				if j.ID == id && j.Start != 0 {
					x := told{said: int64(s.now), start: int64(j.Start)}
					x.Interval, x.known = misses.Around(x.said, x.start)
					open[id] = x
				}
			}
		}
		s.next()
		for id, x := range open {
			at, ok := s.started[id]
			if !ok {
				continue
			}
			delete(open, id)
			misses.Add(x.said, x.start, int64(at))
			if x.known {
				if all++; int64(at) >= x.From && int64(at) <= x.To {
					inside++
				}
			}
		}
	}
	t.Logf("%d of %d starts lie in their interval", inside, all)
	if all < 800 || inside*100 < all*75 || inside*100 > all*85 {
		t.Errorf("%d of %d starts lie in their interval, want 75 to 85 %%", inside, all)
	}
}

func TestTooFewEstimatesTellNothing(t *testing.T) {
	var m whatif.Misses
	for range 19 {
		m.Add(int64(t0), int64(at(60)), int64(at(70)))
	}
	if _, ok := m.Around(int64(at(80)), int64(at(140))); ok {
		t.Error("19 estimates are enough")
	}
	m.Add(0, int64(at(60)), int64(at(70)))             // nothing was said
	m.Add(int64(at(50)), int64(at(40)), int64(at(70))) // the clock was set
	m.Add(int64(t0), int64(at(60)), int64(at(70)))
	i, ok := m.Around(int64(at(80)), int64(at(140)))
	if !ok || i.Known != 20 || time.Duration(i.Late) != 10*time.Minute || i.From < int64(at(149)) || i.To > int64(at(151)) {
		t.Errorf("%v %+v", ok, i)
	}
	if _, ok := m.Around(int64(at(8*24*60)), int64(at(8*24*60+60))); ok {
		t.Error("estimates of the week before last count")
	}
}
