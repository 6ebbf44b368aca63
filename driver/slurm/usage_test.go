package slurm

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
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
