package daemon

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/coxswain-sched/coxswain/agent/nodecheck"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/service/nodehealth"
)

// What checks need that say nothing else.
const (
	leastDisk   = 1 << 30   // bytes
	leastMemory = 256 << 20 // bytes
)

// nodeChecks are the checks of nodes of this machine; nil: there are none.
func nodeChecks(cfg *config.Config) *nodecheck.Checker {
	h := &cfg.Health
	if len(h.Checks) == 0 {
		return nil
	}
	out := nodecheck.Config{Timeout: time.Duration(h.Timeout)}
	for i := range h.Checks {
		c := &h.Checks[i]
		k := nodecheck.Check{
			Kind: c.Check, Name: c.Name, Fence: c.Action() == config.HealthFence,
			Paths: c.Paths, Free: int64(c.Free), Within: time.Duration(c.Within), Run: c.Run,
		}
		switch c.Check {
		case nodecheck.Disk:
			if len(k.Paths) == 0 {
				k.Paths = []string{cfg.State.Dir, os.TempDir()}
			}
			if k.Free == 0 {
				k.Free = leastDisk
			}
		case nodecheck.Memory:
			if k.Free == 0 {
				k.Free = leastMemory
			}
		}
		out.Checks = append(out.Checks, k)
	}
	return nodecheck.New(out)
}

// fitBefore is what asks just before a job begins on a node of this machine whether its checks have fenced that; nil: no job
// waits for a check. ready is closed once monitor returns one: attempts of before a restart may ask earlier.
func fitBefore(cfg *config.Config, ready <-chan struct{}, monitor func() *nodehealth.Monitor) func(context.Context, string, []int) string {
	if cfg.Health.Before == 0 {
		return nil
	}
	return func(ctx context.Context, node string, devices []int) string {
		select {
		case <-ready:
			return monitor().FitNow(ctx, fleet.NodeKey{Pool: poolName, Name: node}, devices)
		case <-ctx.Done():
			return ""
		}
	}
}

// newMonitor has nodes checked: of this machine by its engine, of other pools as their engines tell.
func newMonitor(cfg *config.Config, c *control.Control, local engine.Engine, log *slog.Logger) *nodehealth.Monitor {
	h := &cfg.Health
	m := nodehealth.Config{
		Plane: nodehealth.NewPlane(c, map[string]engine.Engine{poolName: local}),
		Rules: nodehealth.Rules{Failures: h.Failures, Passes: h.Passes},
		Every: time.Duration(h.Every), Timeout: 2 * time.Duration(h.Timeout), Log: log,
	}
	if h.After && len(h.Checks) > 0 {
		m.After = func(pool string) bool { return pool == poolName }
	}
	return nodehealth.New(m)
}
