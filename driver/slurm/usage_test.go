package slurm

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// accounts answers questions one by one, when it is let.
type accounts struct {
	asked chan []uint32
	say   chan error
}

func (a *accounts) Used(_ context.Context, ids []uint32) (out []site.JobUse, err error) {
	a.asked <- ids
	if err := <-a.say; err != nil {
		return nil, err
	}
	for _, id := range ids {
		if id != 9 {
			out = append(out, site.JobUse{ID: id})
		}
	}
	return out, nil
}

// TestQuestionsAreAskedTogether: who comes while accounting is asked waits for the next question, which
// is one for all; each has its own answer.
//
// Seen to fail with: a question for each job.
func TestQuestionsAreAskedTogether(t *testing.T) {
	by := &accounts{asked: make(chan []uint32), say: make(chan error)}
	e := &Engine{controller: &controller{ctx: t.Context(), patience: time.Minute}}
	var all sync.WaitGroup
	var mu sync.Mutex
	got := map[uint32]string{}
	ask := func(id uint32) {
		all.Go(func() {
			u, err := e.askUsage(t.Context(), by, id)
			word := "nothing"
			if err != nil {
				word = fault.KindOf(err).String()
			} else if u != nil && u.ID == id {
				word = "used"
			}
			mu.Lock()
			defer mu.Unlock()
			got[id] = word
		})
	}
	ask(1)
	first := <-by.asked
	for _, id := range []uint32{2, 3, 9} {
		ask(id)
	}
	for waiting := 0; waiting < 3; { // they have joined the queue
		e.usage.mu.Lock()
		waiting = len(e.usage.waiting)
		e.usage.mu.Unlock()
	}
	by.say <- fault.New(fault.Unavailable, "no answer")
	second := <-by.asked
	by.say <- nil
	all.Wait()
	e.wg.Wait()
	if !slices.Equal(first, []uint32{1}) || !slices.Equal(second, []uint32{2, 3, 9}) {
		t.Errorf("asked for %v, then %v", first, second)
	}
	if got[1] != fault.Unavailable.String() || got[2] != "used" || got[3] != "used" || got[9] != "nothing" {
		t.Errorf("%v", got)
	}
}

// TestUsageOfSteps: the job has the sum of its steps' times and bytes, and the memory of the largest.
func TestUsageOfSteps(t *testing.T) {
	use := func(step int, seconds, memory int64) site.StepUse {
		u := site.StepUse{Step: rusage.Step{Step: step, Tasks: 2, Sum: rusage.Use{Known: rusage.CPU | rusage.Memory, User: time.Duration(seconds) * time.Second, Memory: memory}}, Name: "s"}
		for range 100 {
			u.Nodes = append(u.Nodes, "n")
		}
		u.Exit.Status = step
		return u
	}
	r := engine.Report{Tasks: []engine.TaskReport{{Step: engine.BatchStep}}}
	addUsage(&r, &site.JobUse{Steps: []site.StepUse{use(engine.BatchStep, 1, 10), use(0, 5, 30), use(1, 7, 20)}})
	if r.Used == nil || r.Used.Total.User != 13*time.Second || r.Used.Total.Memory != 30 || len(r.Used.Steps) != 3 || len(r.Used.Nodes) != 0 {
		t.Fatalf("%+v", r.Used)
	}
	if len(r.Tasks) != 1+64+64 || r.Tasks[65].Step != 1 || r.Tasks[65].Exit.Status != 1 || r.Tasks[66].Exit.Status != 0 {
		t.Errorf("%d tasks, %+v", len(r.Tasks), r.Tasks[65])
	}
	none := engine.Report{}
	addUsage(&none, &site.JobUse{Steps: []site.StepUse{{Step: rusage.Step{Step: 0}}}})
	if none.Used != nil {
		t.Errorf("nothing was measured: %+v", none.Used)
	}
	c := Config{}
	for ran, want := range map[time.Duration]time.Duration{0: 0, 5 * time.Second: 500 * time.Millisecond, time.Hour: usageWait} {
		j := &site.Job{Started: time.Unix(100, 0), Ended: time.Unix(100, 0).Add(ran)}
		if got := c.usagePatience(j); got != want {
			t.Errorf("a job of %s waits %s, want %s", ran, got, want)
		}
	}
}

// meter is a site that measures running jobs.
type meter struct {
	site.Site

	asked [][]uint32
	says  []site.JobUse
	err   error
	hangs bool
}

func (m *meter) UsedNow(ctx context.Context, ids []uint32) ([]site.JobUse, error) {
	m.asked = append(m.asked, ids)
	if m.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return m.says, m.err
}

// TestLiveUsage: one question is for all attempts that run, and none follows before its time. A step that has ended
// counts on with what was heard of it last. A heterogeneous job is not asked about, and an attempt that waits has no answer.
//
// Seen to fail with a question for each attempt, and with steps that are forgotten with their end.
func TestLiveUsage(t *testing.T) {
	m := &meter{}
	e := &Engine{cfg: Config{Site: m, LiveUsage: time.Hour}, ctx: t.Context(), controller: &controller{ctx: t.Context(), patience: time.Minute}, attempts: map[engine.Ref]*attempt{}}
	ref := func(n uint64) engine.Ref { return engine.Ref{Allocation: n, Attempt: 1} }
	for id, groups := range map[uint32]int{1: 1, 2: 1, 3: 2, 4: 1} {
		phase := engine.Running
		if id == 4 {
			phase = engine.Accepted
		}
		e.attempts[ref(uint64(id))] = &attempt{id: id, order: &order{Job: &job.Job{Spec: &job.Spec{Groups: make([]job.TaskGroup, groups)}}}, report: engine.Report{Phase: phase}}
	}
	step := func(number int, seconds, memory int64) site.StepUse {
		return site.StepUse{Step: rusage.Step{Step: number, Tasks: 1, Running: 1, Sum: rusage.Use{Known: rusage.CPU | rusage.Memory, User: time.Duration(seconds) * time.Second, Memory: memory, Now: memory}}}
	}
	ask := func(n uint64) *rusage.Record {
		t.Helper()
		r, err := e.Usage(t.Context(), ref(n))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	m.says = []site.JobUse{{ID: 1, Steps: []site.StepUse{step(engine.BatchStep, 1, 10), step(0, 100, 50)}}}
	if r := ask(1); r == nil || r.Total.CPUTime() != 101*time.Second || r.Total.Now != 60 || r.At.IsZero() {
		t.Errorf("%+v", r)
	}
	if r := ask(2); r != nil {
		t.Errorf("nothing was heard of it, and it is %+v", r)
	}
	if want := [][]uint32{{1, 2}}; !reflect.DeepEqual(m.asked, want) {
		t.Errorf("asked for %v, want %v", m.asked, want)
	}
	e.live.next = time.Time{}
	m.says = []site.JobUse{{ID: 1, Steps: []site.StepUse{step(engine.BatchStep, 2, 10), step(1, 5, 20)}}, {ID: 2, Steps: []site.StepUse{step(0, 3, 7)}}}
	r := ask(1)
	if r.Total.CPUTime() != 107*time.Second || r.Total.Now != 30 || r.Total.Memory != 60 || r.Step(0).Running != 0 || r.Step(1).Running != 1 {
		t.Errorf("after the end of a step: %+v", r)
	}
	if want := []uint32{2, 1}; !slices.Equal(m.asked[1], want) {
		t.Errorf("asked for %v, want those first of which nothing was heard: %v", m.asked[1], want)
	}
	for n, want := range map[uint64]fault.Kind{3: fault.Unsupported, 4: fault.Conflict, 5: fault.Conflict} {
		if _, err := e.Usage(t.Context(), ref(n)); fault.KindOf(err) != want {
			t.Errorf("attempt %d: %v, want %s", n, err, want)
		}
	}
	e.wg.Wait()
	e.live.next, m.says, m.err = time.Time{}, nil, fault.New(fault.Unsupported, "Slurm measures nothing")
	e.attempts[ref(6)] = &attempt{id: 6, order: e.attempts[ref(1)].order, report: engine.Report{Phase: engine.Running}}
	if _, err := e.Usage(t.Context(), ref(6)); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("%v", err)
	}
}

// TestLiveUsageWithASilentNode: where an answer does not come in time, fewer jobs are asked for at once, and each has
// its turn, though nothing is heard of any.
//
// Seen to fail with the same jobs in each question: those of which nothing was heard come first.
func TestLiveUsageWithASilentNode(t *testing.T) {
	m := &meter{hangs: true}
	e := &Engine{cfg: Config{Site: m, LiveUsage: time.Hour}, ctx: t.Context(), controller: &controller{ctx: t.Context(), patience: time.Millisecond}, attempts: map[engine.Ref]*attempt{}}
	for id := range uint32(8) {
		e.attempts[engine.Ref{Allocation: uint64(id + 1), Attempt: 1}] = &attempt{id: id + 1, order: &order{Job: &job.Job{Spec: &job.Spec{}}}, report: engine.Report{Phase: engine.Running}}
	}
	for n := range 6 {
		m.hangs = n < 4
		if _, err := e.Usage(t.Context(), engine.Ref{Allocation: 1, Attempt: 1}); (err != nil) != m.hangs {
			t.Errorf("question %d: %v", n, err)
		}
		e.wg.Wait()
		e.live.next = time.Time{}
	}
	if want := [][]uint32{{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4}, {5, 6}, {7}, {8}, {1, 2}}; !reflect.DeepEqual(m.asked, want) {
		t.Errorf("asked for %v, want %v", m.asked, want)
	}
}
