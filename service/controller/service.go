package controller

import (
	"context"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/decide"
)

// Submit makes a service, or gives the one of that name a new specification. It is durable when it
// returns; replicas follow. The specification is admitted by the caller and never written to again.
// allowed says whether the service of an owner may be changed; nil: it may.
func (c *Controller) Submit(ctx context.Context, by job.Actor, spec service.Spec, allowed func(job.Owner) error) (decide.Submitted, error) {
	var did decide.Submitted
	if err := service.CheckPath(spec.Route.Path); err != nil {
		return did, fault.New(fault.Invalid, "route.path: %w", err).Advise("write a path such as /v1")
	}
	err := c.ask(ctx, func(ctx context.Context) error {
		name := service.FullName(spec.Account, spec.Name)
		m := c.services[name]
		fresh := m == nil
		if fresh {
			m = c.newManaged(name, nil)
		} else if allowed != nil {
			if err := allowed(c.wanted(m).Owner); err != nil {
				return err
			}
		}
		d, s, err := decide.Submit(m.doc, &spec, by.Name, "", c.cfg.Now())
		if err != nil {
			return err
		}
		did = s
		if d == nil {
			return nil
		}
		if err := c.checkRoute(name, &spec); err != nil {
			return err
		}
		if err := c.writeDocument(ctx, m, by, d); err != nil {
			return err
		}
		c.services[name], m.dirty = m, true
		return nil
	})
	return did, err
}

// change applies a request of a person to the document of a service.
func (c *Controller) change(ctx context.Context, by job.Actor, name string, f func(*service.Document) (*service.Document, error)) error {
	return c.ask(ctx, func(ctx context.Context) error {
		m := c.services[name]
		if m == nil {
			return unknownService(name)
		}
		d, err := f(m.doc)
		if err != nil || d == nil {
			return err
		}
		m.dirty = true
		return c.writeDocument(ctx, m, by, d)
	})
}

func unknownService(name string) error {
	return fault.New(fault.NotFound, "there is no service %s", name).Advise("cox service list shows the services that you may see")
}

// Scale sets the number of replicas. One with a scale of its own goes on from there.
func (c *Controller) Scale(ctx context.Context, by job.Actor, name string, n int) error {
	return c.change(ctx, by, name, func(d *service.Document) (*service.Document, error) {
		return decide.ScaleTo(d, n, by.Name, c.cfg.Now())
	})
}

// Pause stops a rollout where it is.
func (c *Controller) Pause(ctx context.Context, by job.Actor, name string) error {
	return c.change(ctx, by, name, func(d *service.Document) (*service.Document, error) { return decide.Pause(d, c.cfg.Now()) })
}

// Resume lets a rollout go on.
func (c *Controller) Resume(ctx context.Context, by job.Actor, name string) error {
	return c.change(ctx, by, name, func(d *service.Document) (*service.Document, error) { return decide.Resume(d, c.cfg.Now()) })
}

// Undo goes back to a revision that is kept; 0: the one before.
func (c *Controller) Undo(ctx context.Context, by job.Actor, name string, to uint32) (decide.Submitted, error) {
	var did decide.Submitted
	err := c.change(ctx, by, name, func(d *service.Document) (*service.Document, error) {
		d, s, err := decide.Undo(d, to, by.Name, c.cfg.Now())
		if err != nil || d == nil {
			return nil, err
		}
		did = s
		return d, c.checkRoute(name, &d.Revision(d.Target()).Spec)
	})
	return did, err
}

// Stop drains and ends every replica, then removes the service. It returns when that is durable; the
// service is there until its last replica has ended.
func (c *Controller) Stop(ctx context.Context, by job.Actor, name string) error {
	return c.change(ctx, by, name, func(d *service.Document) (*service.Document, error) { return decide.Stop(d, by.Name, c.cfg.Now()), nil })
}
