package jobs

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// running is a server on a real socket and a real port that has the routes of jobs alone.
type running struct {
	*servertest.Running
	jobs *Service
}

// start runs a server; set changes its configuration.
func start(t testing.TB, p *servertest.Plane, set func(*Config)) *running {
	t.Helper()
	log := &servertest.Log{}
	s := register(p, log, set)
	return &running{servertest.Listen(t, p, log, s.Server, func(ctx context.Context, listeners ...net.Listener) error {
		defer s.Close()
		return s.Serve(ctx, listeners...)
	}), s}
}

// register makes a server that does not listen.
func register(p *servertest.Plane, log *servertest.Log, set func(*Config)) *Service {
	cfg := Config{
		Plane: p, Users: &user.Users{Lookup: servertest.Lookup}, Now: time.Now,
		Rules:     &admission.Rules{Partitions: []admission.Partition{{Name: "main", Default: true, Nodes: []string{"v1", "v2", "v3", "v4"}}}},
		Heartbeat: 15 * time.Second, Stall: 10 * time.Second, Patience: 10 * time.Second,
	}
	if set != nil {
		set(&cfg)
	}
	cfg.InForce = intake.NewRules(cfg.Rules, p.Policy)
	return Register(transport.New(transport.Config{
		Tokens: p, Policy: cfg.Policy, Users: cfg.Users, Log: log.Logger(), Version: "1.2.3", Now: cfg.Now, Stall: cfg.Stall, Patience: cfg.Patience,
	}), cfg)
}
