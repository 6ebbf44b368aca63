package rest

import (
	"context"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ site.Teller = (*Site)(nil)

// Me is site.Teller's. slurmrestd says nothing of users of the cluster: what only a command
// tells is taken from Config.Commands, which may be reached as another user.
func (s *Site) Me(ctx context.Context) (site.Person, error) {
	p, err := s.Person(ctx, s.cfg.User)
	if k, ok := s.cfg.Commands.(operators); ok && err == nil {
		p.Operator, err = k.Operates(ctx, &p)
	}
	return p, err
}

// operators is an optional ability of Config.Commands.
type operators interface {
	Operates(ctx context.Context, p *site.Person) (bool, error)
}

// Person is site.Teller's.
func (s *Site) Person(ctx context.Context, name string) (site.Person, error) {
	t, ok := s.cfg.Commands.(site.Teller)
	if !ok {
		return site.Person{Name: name}, fault.New(fault.Unsupported, "slurmrestd does not say who %s is on the cluster", name).Advise("give the pool Slurm's commands too")
	}
	return t.Person(ctx, name)
}

// acting is the key of whom a change is made as, in a context.
type acting struct{}

// actor is a Site for a user.
type actor struct {
	*Site
	user string
}

var _ site.Acting = (*Site)(nil)

// As is site.Acting's: what changes a job is asked for with the user's token, and with the
// site's own if that is refused.
func (s *Site) As(user string) site.Site {
	if s.keep == nil || user == s.cfg.User {
		return s
	}
	return &actor{s, user}
}

func (a *actor) withUser(ctx context.Context) context.Context {
	return context.WithValue(ctx, acting{}, a.user)
}

// End is site.Site's.
func (a *actor) End(ctx context.Context, id uint32) error { return a.Site.End(a.withUser(ctx), id) }

// Kill is site.Site's.
func (a *actor) Kill(ctx context.Context, id uint32) error { return a.Site.Kill(a.withUser(ctx), id) }

// Signal is site.Site's.
func (a *actor) Signal(ctx context.Context, id uint32, signal int, to site.Scope) error {
	return a.Site.Signal(a.withUser(ctx), id, signal, to)
}

// Update is site.Site's.
func (a *actor) Update(ctx context.Context, id uint32, c site.Change) error {
	return a.Site.Update(a.withUser(ctx), id, c)
}
