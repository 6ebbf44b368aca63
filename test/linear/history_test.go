package linear

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// known lists the servers so far.
func (w *world) known() []*life {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lives)
}

// history is what clients saw, and how it ended.
type history struct {
	ops    []op
	names  map[job.ID]string // of the jobs at the end
	faults map[string]int
}

// record lets clients ask so many things each, and everything settle.
func record(t *testing.T, seed uint64, asks int) (h history) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed)
		w.start()
		over, ticked := make(chan struct{}), make(chan struct{})
		var keeper, ticker sync.WaitGroup
		keeper.Go(func() { w.keep(over) })
		ticker.Go(func() {
			for {
				select {
				case <-time.After(10 * time.Millisecond):
					w.engine.World().Advance()
				case <-ticked:
					return
				}
			}
		})
		var working sync.WaitGroup
		clients := make([]*client, 3)
		for i := range clients {
			clients[i] = &client{w: w, n: i + 1}
			working.Go(func() { clients[i].run(asks) })
		}
		working.Wait()
		w.calm.Store(true)
		close(over)
		keeper.Wait()
		w.settle(clients[0])
		close(ticked)
		ticker.Wait()
		w.engine.late.Wait()
		w.end(w.life.Load())
		h = w.history(clients)
		if err := w.engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// settle waits until everything that was asked for is done, and looks once more.
func (w *world) settle(c *client) {
	synctest.Wait()
	l := w.life.Load()
	select {
	case <-l.disk.dead: // killed with the last request, and nobody has seen to it
		w.end(l)
		w.start()
		l = w.life.Load()
	default:
	}
	w.shift.Add(int64(3 * time.Hour)) // whatever was put off by a clock set back
	for range 10_000 {
		time.Sleep(100 * time.Millisecond)
		open := 0
		l.ctl.Scan(query.Filter{Live: true}, func(v *state.View) bool {
			if v.Job.Flags&(job.Stopping|job.Configuring) != 0 {
				open++
			}
			return true
		})
		err := l.ctl.Check(context.Background())
		if err != nil && fault.KindOf(err) != fault.Unavailable { // it may still want to know of a write
			w.t.Error(err)
		}
		if open == 0 && err == nil {
			c.list()
			return
		}
	}
	w.t.Error("what was asked for is not done, and nothing fails any more")
}

// history puts together what the clients saw. An operation without an answer has
// happened before the next server led, or never.
func (w *world) history(clients []*client) history {
	h := history{names: map[job.ID]string{}, faults: w.faults}
	end := w.stamp()
	views, _, err := w.life.Load().ctl.Jobs(context.Background())
	if err != nil {
		w.t.Error(err)
	}
	ids := map[string]job.ID{}
	for _, v := range views {
		if other, twice := ids[v.Job.Spec.Name]; twice {
			w.t.Errorf("%q was kept twice, as job %d and %d", v.Job.Spec.Name, other, v.Job.ID)
		}
		ids[v.Job.Spec.Name], h.names[v.Job.ID] = v.Job.ID, v.Job.Spec.Name
	}
	most := map[job.ID]int{}
	for _, c := range clients {
		for _, o := range c.ops {
			if o.out.Answer == unknown {
				if o.job = cmp.Or(ids[o.name], o.job); o.in.Verb == submit && ids[o.name] == 0 {
					continue // nothing came of it
				}
				if o.ret = max(o.ret, end); o.life+1 < len(w.lives) {
					o.ret = max(o.call+1, w.lives[o.life+1].opened)
				}
			}
			if o.in.Verb == submit && o.out.Answer == refused {
				if id := ids[o.name]; id != 0 {
					w.t.Errorf("%q was refused and is job %d", o.name, id)
				}
				continue
			}
			if o.in.Verb == submit && o.out.Answer == done && ids[o.name] != o.job {
				w.t.Errorf("%q was accepted as job %d, and is job %d", o.name, o.job, ids[o.name])
			}
			most[o.job] = max(most[o.job], o.out.Attempt)
			h.ops = append(h.ops, o)
		}
	}
	for i := range h.ops {
		h.ops[i].in.Most = most[h.ops[i].job]
	}
	return h
}

// partitions are the operations of each job.
func (h *history) partitions() map[job.ID][]porcupine.Operation {
	out := map[job.ID][]porcupine.Operation{}
	for _, o := range h.ops {
		out[o.job] = append(out[o.job], porcupine.Operation{ClientId: o.client, Input: o.in, Call: o.call, Output: o.out, Return: o.ret})
	}
	return out
}

// searchTime bounds the search for an order. Its time grows with the factorial of the
// operations that lie beside each other, so one history in some hundred, which depends on
// how the machine ran the clients, needs minutes where the others need milliseconds.
func searchTime() time.Duration {
	if os.Getenv("COX_LONG") != "" {
		return 5 * time.Minute
	}
	return 40 * time.Second
}

// check fails the test if there is no order, and tells the story of the job. It reports
// whether the search ended within searchTime for every job.
func (h *history) check(t *testing.T, name string) (judged bool) {
	t.Helper()
	judged = true
	whole := model.ToModel()
	parts := h.partitions()
	for _, id := range slices.Sorted(maps.Keys(parts)) {
		result, info := porcupine.CheckOperationsVerbose(whole, parts[id], searchTime())
		switch result {
		case porcupine.Ok:
			continue
		case porcupine.Unknown:
			t.Logf("%s: job %d: the search for an order of %d operations takes longer than %s", name, id, len(parts[id]), searchTime())
			judged = false
			continue
		}
		t.Errorf("%s: what clients saw of job %d has no order that keeps to the rules.\n%s%s", name, id, story(parts[id]), drawn(whole, info, name, id))
	}
	return judged
}

// drawn keeps porcupine's picture of a failure.
func drawn(m porcupine.Model, info porcupine.LinearizationInfo, name string, id job.ID) string {
	dir := os.Getenv("COX_LINEAR_OUT")
	if dir == "" {
		dir = os.TempDir()
	}
	path := filepath.Join(dir, fmt.Sprintf("linear-%s-job-%d.html", strings.ReplaceAll(name, " ", "-"), id))
	if err := porcupine.VisualizePath(m, info, path); err != nil {
		return fmt.Sprintf("(no picture: %v)", err)
	}
	return "The picture of it: " + path
}

// story tells operations in the order of their calls.
func story(ops []porcupine.Operation) string {
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var b strings.Builder
	for _, o := range ops {
		fmt.Fprintf(&b, "%6d to %6d  client %d: %s\n", o.Call, o.Return, o.ClientId, describe(o.Input.(input), o.Output.(output)))
	}
	return b.String()
}

// TestMain: the binary is also the real server and the supervisors of its jobs.
func TestMain(m *testing.M) { plane.Main(m, nil) }

// seedOf is the seed of COX_LINEAR_SEED, or another.
func seedOf(t *testing.T, other uint64) (seed uint64, given bool) {
	s := os.Getenv("COX_LINEAR_SEED")
	if s == "" {
		return other, false
	}
	seed, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("COX_LINEAR_SEED: %v", err)
	}
	return seed, true
}

// TestHistories records histories and finds the order of each.
func TestHistories(t *testing.T) {
	count := uint64(180)
	first, one := seedOf(t, 1)
	switch {
	case one:
		count = 1
	case os.Getenv("COX_LONG") != "":
		count = 5000
	}
	var mu sync.Mutex
	asked, unjudged, answers, faults := 0, uint64(0), map[answer]int{}, map[string]int{}
	t.Run("of", func(t *testing.T) {
		for seed := first; seed < first+count; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				h := record(t, seed, 45)
				judged := h.check(t, fmt.Sprintf("seed %d", seed))
				mu.Lock()
				defer mu.Unlock()
				if !judged {
					unjudged++
				}
				for _, o := range h.ops {
					if o.in.Verb != list {
						asked++
						answers[o.out.Answer]++
					}
				}
				for name, n := range h.faults {
					faults[name] += n
				}
			})
		}
	})
	t.Logf("%d histories from seed %d on, %d operations beside lists: %v", count, first, asked, answers)
	t.Logf("faults: %v", faults)
	if allowed := max(2, count/100); unjudged > allowed {
		t.Errorf("%d histories of %d were not judged within %s each, more than %d", unjudged, count, searchTime(), allowed)
	}
}
