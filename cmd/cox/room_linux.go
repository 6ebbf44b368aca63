package main

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local"
	"github.com/coxswain-sched/coxswain/engine/local/discover"
	"github.com/coxswain-sched/coxswain/engine/local/visible"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/resource"
	"github.com/coxswain-sched/coxswain/run"
)

// tether is how long work outlives a cox run whose state directory is a temporary
// one: nobody could take it up.
const tether = time.Second

// devices is what the engine has to know of the machine's own devices.
type devices struct {
	shown map[int]visible.Device // how programs are told of them, by index
	numa  []local.NUMANode       // where they hang
}

// openLocal returns the function that opens the local engine over a room.
func openLocal(log *slog.Logger, byAddress bool, own devices) func(context.Context, string, run.Room, bool) (engine.Engine, error) {
	return func(ctx context.Context, dir string, room run.Room, temporary bool) (engine.Engine, error) {
		naming, why := local.NamedByAddr, ""
		if !byAddress {
			naming, why = local.FindNaming(ctx, namesBinary())
		}
		if why != "" {
			log.Info(why)
		}
		nodes := local.VirtualRoom(local.RoomConfig{Naming: naming, Seed: dir, Names: room.Names}, room.Nodes)
		cfg := local.Config{Root: dir, Nodes: nodes, Cox: namesBinary(), Naming: naming, Log: log, Shown: discover.Shown(own.shown), NUMA: own.numa}
		if temporary {
			cfg.Tether = tether
		}
		e, err := local.New(cfg)
		if err != nil {
			return nil, err // not e: a nil *Engine is no nil engine.Engine
		}
		return e, nil
	}
}

// machine finds out what this computer has, and how programs are told of its devices. GPUs are looked for only if a job asks
// for some: a driver that is not kept loaded takes seconds to answer.
func machine(ctx context.Context, log *slog.Logger, gpus bool) (run.Machine, devices, error) {
	m, notes, err := discover.Look(ctx, discover.Options{NoGPU: !gpus})
	if err != nil {
		return run.Machine{}, devices{}, err
	}
	for _, n := range notes {
		log.Debug("discovery", "note", n.String())
	}
	found, names := discover.Fleet(m.GPUs, nil)
	own := devices{shown: map[int]visible.Device{}, numa: local.NUMAOf(m)}
	for i, d := range found {
		own.shown[d.Index] = names[i]
	}
	found = slices.DeleteFunc(found, func(d fleet.Device) bool { return d.Foreign > 0 })
	return run.Machine{CPUs: m.UsableCPUs(), Memory: resource.Amount(m.MemoryBytes), Devices: found}, own, nil
}
