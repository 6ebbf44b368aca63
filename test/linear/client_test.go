package linear

import (
	"context"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// op is an operation on one job with its time.
type op struct {
	client    int
	job       job.ID // 0: a submission of which the number is not known
	name      string // of a submission
	in        input
	out       output
	call, ret int64
	life      int // number of the server that was asked
}

// client asks for one thing after the other.
type client struct {
	w   *world
	n   int
	ops []op
}

// jobs are how many jobs a history has, more or less.
const jobs = 5

// run asks for so many things.
func (c *client) run(n int) {
	for i := range n {
		time.Sleep(time.Duration(c.w.n(60)) * time.Millisecond)
		ids := []job.ID{job.ID(1 + c.w.n(jobs))}
		if c.w.n(6) == 0 {
			ids = append(ids, ids[0]%jobs+1)
		}
		comment := fmt.Sprintf("note %d.%d", c.n, i)
		switch v := c.w.n(30); {
		case v < 1 || i < 2: // so that there is something to ask about
			c.submit(fmt.Sprintf("job %d.%d", c.n, i), input{Verb: submit, Held: c.w.n(3) == 0, Again: c.w.n(2) == 0, Comment: comment})
		case v < 6:
			c.change(ids, input{Verb: cancel}, control.Cancel{Grace: 50 * time.Millisecond})
		case v < 9:
			in := input{Verb: hold, Admin: c.w.n(3) == 0}
			c.change(ids, in, control.Hold{On: true, Admin: in.Admin})
		case v < 13:
			in := input{Verb: release, Admin: c.w.n(2) == 0}
			c.change(ids, in, control.Hold{Admin: in.Admin})
		case v < 16:
			in := input{Verb: requeue, Held: c.w.n(3) == 0}
			c.change(ids, in, control.Requeue{Hold: in.Held})
		case v < 19:
			c.change(ids, input{Verb: update, Comment: comment}, control.Update{Comment: &comment})
		case v < 28:
			c.show(ids[0])
		default:
			c.list()
		}
	}
}

// server is whom to ask: sometimes one that was followed and does not know it yet.
func (c *client) server() (*life, int) {
	l := c.w.life.Load()
	if old := c.w.before.Load(); old != nil && c.w.n(2) == 0 {
		l = old
	}
	n := 0
	for i, o := range c.w.known() {
		if o == l {
			n = i
		}
	}
	return l, n
}

func (c *client) submit(name string, in input) {
	l, n := c.server()
	o := op{client: c.n, name: name, in: in, life: n, call: c.w.stamp()}
	spec := &job.Spec{
		Name: name, Comment: in.Comment, Held: in.Held, Requeue: in.Again,
		Groups: []job.TaskGroup{{
			Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}, TasksPerNode: 1,
			PerNode: resource.Requirements{Devices: []resource.DeviceRequest{{Count: 1 + c.w.n(2)}}},
		}},
		Program: job.Program{Kind: job.Direct, Args: []string{"true"}},
	}
	a, err := l.ctl.Submit(context.Background(), control.Submission{Spec: spec, By: job.Actor{Name: "me"}})
	o.ret, o.out, o.job = c.w.stamp(), c.answered(err), a.ID
	c.ops = append(c.ops, o)
}

func (c *client) change(ids []job.ID, in input, what control.Op) {
	l, n := c.server()
	call := c.w.stamp()
	errs, err := l.ctl.Change(context.Background(), job.Actor{Name: "me"}, ids, what)
	ret, all := c.w.stamp(), c.answered(err)
	for i, id := range ids {
		out := all
		if out.Answer == done {
			out = c.answered(errs[i])
		}
		c.ops = append(c.ops, op{client: c.n, job: id, in: in, out: out, life: n, call: call, ret: ret})
	}
}

// answered is the answer that an error stands for, if it reaches the client at all.
func (c *client) answered(err error) output {
	if c.w.one(25, "answer to a client lost") {
		return output{Answer: unknown}
	}
	switch k := fault.KindOf(err); {
	case err == nil:
		return output{Answer: done}
	case k == fault.Unavailable:
		return output{Answer: unknown}
	case k == fault.Exhausted:
		return output{Answer: refused}
	case k == fault.NotFound:
		return output{Answer: notFound}
	case k == fault.Conflict:
		return output{Answer: conflict}
	case k == fault.Permission:
		return output{Answer: denied}
	}
	c.w.t.Errorf("a client was answered %v", err)
	return output{Answer: unknown}
}

func (c *client) show(id job.ID) {
	l := c.w.life.Load()
	o := op{client: c.n, job: id, in: input{Verb: show}, call: c.w.stamp()}
	v, err := l.ctl.Job(context.Background(), id)
	o.ret = c.w.stamp()
	switch {
	case l.over.Load() || err != nil && fault.KindOf(err) != fault.NotFound:
		return // no answer
	case err != nil:
		o.out = output{Answer: notFound}
	default:
		o.out = seen(&v)
	}
	c.ops = append(c.ops, o)
}

func (c *client) list() {
	l := c.w.life.Load()
	call := c.w.stamp()
	views, _, err := l.ctl.Jobs(context.Background())
	ret := c.w.stamp()
	if err != nil || l.over.Load() {
		return // no answer
	}
	found := map[job.ID]output{}
	for i := range views {
		found[views[i].Job.ID] = seen(&views[i])
	}
	for id := range job.ID(4 * jobs) {
		out, is := found[id+1]
		if !is {
			out = output{Answer: notFound}
		}
		c.ops = append(c.ops, op{client: c.n, job: id + 1, in: input{Verb: list}, out: out, call: call, ret: ret})
	}
}

// seen is what a client sees of a job.
func seen(v *state.View) output {
	out := output{
		Answer: done, Attempt: int(v.Job.Attempt), Comment: v.Job.Spec.Comment,
		Held: v.Job.Flags&job.Held != 0, Admin: v.Job.Flags&job.HeldAdmin != 0, Stopping: v.Job.Flags&job.Stopping != 0,
	}
	switch s := v.Job.State; {
	case s == job.Pending:
		out.Phase = pending
	case s == job.Cancelled:
		out.Phase = cancelled
	case s.Final():
		out.Phase = ended
	default:
		out.Phase = running
	}
	return out
}
