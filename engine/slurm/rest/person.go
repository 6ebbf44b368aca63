package rest

import (
	"context"

	"github.com/coxswain-sched/coxswain/engine/slurm/site"
	"github.com/coxswain-sched/coxswain/fault"
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
