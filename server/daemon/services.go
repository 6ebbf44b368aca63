package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/schedule"
	servicemodel "github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/controller"
	"github.com/coxswain-sched/coxswain/service/endpoints"
	handovercontroller "github.com/coxswain-sched/coxswain/service/handover/controller"
	"github.com/coxswain-sched/coxswain/service/handover/ondemand"
	"github.com/coxswain-sched/coxswain/service/nodehealth"
	"github.com/coxswain-sched/coxswain/service/poolmove"
	schedulecontroller "github.com/coxswain-sched/coxswain/service/schedule/controller"
	"github.com/coxswain-sched/coxswain/store/secret"
)

// services are the parts of a server that keep services alive, submit the runs of schedules, hand machines
// over and move waiting jobs between pools.
type services struct {
	hub        *endpoints.Hub
	controller *controller.Controller
	schedules  *schedulecontroller.Controller
	handovers  *handovercontroller.Controller
	demands    *ondemand.Controller
	mover      *poolmove.Mover

	control *control.Control
	local   engine.Engine // of the machine's own pool
	log     *slog.Logger
}

func newServices(c *control.Control, local engine.Engine, nodes *nodehealth.Monitor, kept *secret.Store, isAdmin func(job.Owner) bool, rules *admission.Rules, log *slog.Logger) *services {
	hub := endpoints.New(endpoints.Config{
		Drained: func(ctx context.Context, _ job.ID, ref engine.Ref) error { return c.Drained(ctx, ref) },
		Log:     log,
	})
	handovers := handovercontroller.New(handovercontroller.Config{Plane: handovercontroller.NewPlane(c), Check: nodes.CheckNow, Log: log})
	site := &intake.Site{Plane: c, Rules: intake.NewRules(rules, c.Policy).Now}
	return &services{
		mover: poolmove.New(poolmove.Config{Plane: c, Places: site.Places, Log: log}),
		hub:   hub, control: c, local: local, log: log,
		handovers:  handovers,
		demands:    ondemand.New(ondemand.Config{Plane: c, Move: ondemand.By(handovers), Held: func(name string) int { return hub.Load(name).Held }, Log: log}),
		schedules:  schedulecontroller.New(schedulecontroller.Config{Plane: schedulecontroller.NewPlane(c), Log: log}),
		controller: controller.New(controller.Config{Plane: controller.NewPlane(c), Hub: hub, Tokens: hashTokens(kept), Rules: c.Rules, IsAdmin: isAdmin, Log: log}),
	}
}

// hashTokens returns SHA-256 in hex of the tokens that secrets of a user hold, for gateways.
func hashTokens(kept *secret.Store) func(job.Owner, []string) ([]string, error) {
	return func(owner job.Owner, names []string) ([]string, error) {
		var out []string
		for _, name := range names {
			value, err := kept.Get(owner.UID, name)
			if err != nil {
				return nil, err
			}
			value = bytes.TrimRight(value, "\r\n") // as they stand in a header
			if len(value) == 0 {
				return nil, fault.New(fault.Invalid, "secret %s is empty, and an empty token would let everybody in", name).Advise("give it a value: cox secret set %s", name)
			}
			sum := sha256.Sum256(value)
			out = append(out, hex.EncodeToString(sum[:]))
		}
		return out, nil
	}
}

// documents are those of all services and schedules.
func (s *server) documents() []state.Controller {
	return append(s.control.Controllers(servicemodel.ControllerKind), s.control.Controllers(schedule.ControllerKind)...)
}

// run keeps services alive, schedules running and waiting jobs where they start first, until ctx ends.
func (s *services) run(ctx context.Context) {
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { s.hub.Run(ctx) })
	parts.Go(func() { s.controller.Run(ctx) })
	parts.Go(func() { s.schedules.Run(ctx) })
	parts.Go(func() { s.handovers.Run(ctx) })
	parts.Go(func() { s.demands.Run(ctx) })
	parts.Go(func() { s.mover.Run(ctx) })
	parts.Go(func() { s.followPools(ctx) })
}

// lookForPools is how often pools that were added or removed are looked for.
const lookForPools = time.Second

// followPools follows the endpoints of each pool whose engine tells them, until ctx ends.
func (s *services) followPools(ctx context.Context) {
	type followed struct {
		engine engine.Engine
		stop   func()
	}
	follows := map[string]followed{}
	var following sync.WaitGroup
	defer following.Wait()
	ticker := time.NewTicker(lookForPools)
	defer ticker.Stop()
	for {
		there := map[string]bool{}
		for _, pool := range s.control.Pools() {
			e := s.local
			if pool.Name != poolName {
				e = s.control.AddedEngine(pool.Name)
			}
			watcher, ok := e.(engine.EndpointWatcher)
			if !ok {
				continue
			}
			there[pool.Name] = true
			if now, ok := follows[pool.Name]; ok && now.engine == e {
				continue
			} else if ok {
				now.stop()
			}
			own, stop := context.WithCancel(ctx)
			following.Go(func() { s.hub.Follow(own, pool.Name, watcher) })
			follows[pool.Name] = followed{e, stop}
		}
		for name, f := range follows {
			if !there[name] {
				f.stop()
				delete(follows, name)
			}
		}
		select {
		case <-ctx.Done():
			for _, f := range follows {
				f.stop()
			}
			return
		case <-ticker.C:
		}
	}
}
