package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// caller is a client of a real server.
type caller struct {
	p       *plane.Plane
	n       int
	rnd     *rand.Rand
	stamps  *atomic.Int64
	started *atomic.Int64 // number of the server that was started last
	down    *sync.RWMutex // held while no server is there
	gate    *plane.Gate
	ops     []op
}

// do runs one request between two stamps.
func (c *caller) do(o op, ask func(context.Context) (output, job.ID)) {
	c.down.RLock() // nothing is learned from requests that nobody hears
	defer c.down.RUnlock()
	o.client, o.call = c.n, c.stamps.Add(1)
	out, id := ask(c.p.T.Context())
	o.ret, o.out = c.stamps.Add(1), out
	o.life = int(c.started.Load()) + 1 // the next one may have been there already
	if id != 0 {
		o.job = id
	}
	c.ops = append(c.ops, o)
}

// heard is the answer that an error of the client stands for.
func heard(err error) output {
	switch k := fault.KindOf(err); {
	case err == nil:
		return output{Answer: done}
	case k == fault.NotFound:
		return output{Answer: notFound}
	case k == fault.Conflict:
		return output{Answer: conflict}
	case k == fault.Permission:
		return output{Answer: denied}
	}
	return output{Answer: unknown} // the connection broke, or nobody listened
}

// refusal is the answer that the status of one job of a change stands for.
func refusal(status int) output {
	for _, k := range []fault.Kind{fault.NotFound, fault.Conflict, fault.Permission} {
		if k.HTTPStatus() == status {
			return heard(fault.New(k, "status %d", status))
		}
	}
	return output{Answer: unknown}
}

func (c *caller) run(n int) {
	for range n {
		i := len(c.ops)
		id := job.ID(1 + c.rnd.IntN(4))
		comment := fmt.Sprintf("note %d.%d", c.n, i)
		switch v := c.rnd.IntN(20); {
		case i == 0 || v < 2:
			c.submit(fmt.Sprintf("job-%d.%d", c.n, i), c.rnd.IntN(2) == 0)
		case v < 4:
			c.change(id, input{Verb: cancel}, &api.Change{Verb: api.VerbCancel})
		case v < 6:
			c.change(id, input{Verb: hold}, &api.Change{Verb: api.VerbHold, Firm: new(bool)})
		case v < 8:
			c.change(id, input{Verb: release, Admin: true}, &api.Change{Verb: api.VerbRelease})
		case v < 10:
			c.change(id, input{Verb: requeue, Held: v == 8}, &api.Change{Verb: api.VerbRequeue, Hold: v == 8})
		case v < 12:
			c.change(id, input{Verb: update, Comment: comment}, &api.Change{Verb: api.VerbUpdate, Update: &api.Update{Comment: &comment}})
		default:
			c.show(id)
		}
	}
}

func (c *caller) submit(name string, held bool) {
	// A supervisor that a loaded machine keeps from answering makes the job wait again.
	c.do(op{name: name, in: input{Verb: submit, Held: held, Again: true, Comment: name}}, func(context.Context) (output, job.ID) {
		args := []string{"--job-name=" + name, "--comment=" + name, "--no-requeue"}
		if held {
			args = append(args, "--hold")
		}
		script := c.gate.Wait
		if c.rnd.IntN(2) == 0 {
			script = "exit 3"
		}
		got, err := c.p.TrySubmit(script, args...)
		if err != nil {
			return heard(err), 0
		}
		return heard(nil), got.ID
	})
}

func (c *caller) change(id job.ID, in input, ch *api.Change) {
	ch.Select = api.Select{IDs: []string{id.String()}}
	c.do(op{job: id, in: in}, func(ctx context.Context) (output, job.ID) {
		got, err := c.p.Client.Change(ctx, ch)
		switch {
		case err != nil:
			return heard(err), 0
		case len(got.Errors) > 0:
			return refusal(got.Errors[0].Error.Status), 0
		}
		return heard(nil), 0
	})
}

func (c *caller) show(id job.ID) {
	o := op{job: id, in: input{Verb: show}}
	c.do(o, func(ctx context.Context) (output, job.ID) {
		j, err := c.p.Client.Job(ctx, id.String())
		if err != nil {
			return heard(err), 0
		}
		return shown(j), 0
	})
	if c.ops[len(c.ops)-1].out.Answer == unknown {
		c.ops[len(c.ops)-1].job = 0 // nothing was seen
	}
}

// shown is what a job looks like over the API.
func shown(j *api.Job) output {
	has := func(flag string) bool { return slices.Contains(j.Flags, flag) }
	out := output{
		Answer: done, Attempt: int(j.Attempt), Comment: j.Spec.Comment,
		Held: has("HELD"), Admin: has("HELD_ADMIN"), Stopping: has("STOPPING"),
	}
	switch j.State {
	case "PENDING":
		out.Phase = pending
	case "RUNNING":
		out.Phase = running
	case "CANCELLED":
		out.Phase = cancelled
	default:
		out.Phase = ended
	}
	return out
}

// TestARealServer has clients ask a server that is killed (SIGKILL) and started again
// under them. Its jobs are real processes, which outlive it.
func TestARealServer(t *testing.T) {
	const rounds = 12
	p := plane.New(t, nil)
	gate := p.Gate("end")
	p.StartProcess("")
	var stamps, started atomic.Int64
	var down sync.RWMutex
	opened := []int64{0}
	callers := make([]*caller, 3)
	seed, _ := seedOf(t, 1)
	var working sync.WaitGroup
	asked := make(chan struct{})
	for i := range callers {
		callers[i] = &caller{
			p: p, n: i + 1, rnd: rand.New(rand.NewPCG(seed, uint64(i))), stamps: &stamps, started: &started, gate: gate, down: &down,
		}
		working.Go(func() {
			for range rounds {
				callers[i].run(12)
				asked <- struct{}{}
			}
		})
	}
	for n := range rounds * len(callers) {
		<-asked
		if n%3 != 2 || n == rounds*len(callers)-1 {
			continue
		}
		p.Kill()
		down.Lock()
		p.StartProcess("")
		opened = append(opened, stamps.Add(1))
		started.Add(1)
		down.Unlock()
	}
	working.Wait()
	h := history{names: map[job.ID]string{}}
	h.gather(p, callers, opened, stamps.Add(1))
	if !h.check(t, "real server") {
		t.Error("not every job was judged")
	}
	gate.Open()
	answers := map[answer]int{}
	for _, o := range h.ops {
		answers[o.out.Answer]++
	}
	t.Logf("%d operations, %d servers: %v", len(h.ops), len(opened), answers)
}

// gather puts together what the callers heard; see world.history.
func (h *history) gather(p *plane.Plane, callers []*caller, opened []int64, end int64) {
	ids, most := map[string]job.ID{}, map[job.ID]int{}
	for id := job.ID(1); ; id++ {
		call := end
		j, err := p.Client.Job(p.T.Context(), id.String())
		if err != nil && fault.KindOf(err) == fault.NotFound {
			break
		} else if err != nil {
			p.T.Fatal(err)
		}
		if ids[j.Spec.Name] != 0 {
			p.T.Errorf("%q was kept twice, as job %d and %d", j.Spec.Name, ids[j.Spec.Name], id)
		}
		ids[j.Spec.Name], most[id] = id, int(j.Attempt)
		h.ops = append(h.ops, op{job: id, in: input{Verb: show}, out: shown(j), call: call + int64(2*id), ret: call + int64(2*id) + 1})
	}
	for _, c := range callers {
		for _, o := range c.ops {
			if o.out.Answer == unknown {
				o.ret = end
				if o.life+1 < len(opened) {
					o.ret = max(o.call+1, opened[o.life+1])
				}
				if o.in.Verb == submit {
					o.job = ids[o.name]
				}
			}
			switch {
			case o.job == 0:
				continue // nothing came of it
			case o.in.Verb == submit && ids[o.name] != o.job:
				p.T.Errorf("%q was accepted as job %d, and is job %d", o.name, o.job, ids[o.name])
			}
			most[o.job] = max(most[o.job], o.out.Attempt)
			h.ops = append(h.ops, o)
		}
	}
	for i := range h.ops {
		h.ops[i].in.Most = most[h.ops[i].job]
	}
}
