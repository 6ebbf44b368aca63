package submission

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/agent/discover"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/internal/localrun"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// tether is how long work outlives a cox run whose state directory is a temporary
// one: nobody could take it up.
const tether = time.Second

// devices is what the engine has to know of the machine's own devices.
type devices struct {
	shown map[int]deviceenv.Device // how programs are told of them, by index
	numa  []local.NUMANode         // where they hang
}

// openLocal returns the function that opens the local engine over a room.
func openLocal(log *slog.Logger, byAddress bool, own devices) func(context.Context, string, localrun.Room, bool) (engine.Engine, error) {
	return func(ctx context.Context, dir string, room localrun.Room, temporary bool) (engine.Engine, error) {
		naming, why := local.NamedByAddr, ""
		if !byAddress {
			naming, why = local.FindNaming(ctx, cli.SlurmBinaryPath())
		}
		if why != "" {
			log.Info(why)
		}
		seed, err := local.AddressSeed(dir, dir)
		if err != nil {
			return nil, err
		}
		nodes := local.VirtualRoom(local.RoomConfig{Naming: naming, Seed: seed, Names: room.Names}, room.Nodes)
		cfg := local.Config{Root: dir, Nodes: nodes, Cox: cli.SlurmBinaryPath(), Naming: naming, Log: log, Shown: discover.Shown(own.shown), NUMA: own.numa}
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

// openMachine finds out what this computer has, and how programs are told of its devices. GPUs are looked for only if a job asks
// for some: a driver that is not kept loaded takes seconds to answer.
func openMachine(ctx context.Context, log *slog.Logger, gpus bool) (localrun.Machine, devices, error) {
	m, notes, err := discover.Look(ctx, discover.Options{NoGPU: !gpus})
	if err != nil {
		return localrun.Machine{}, devices{}, err
	}
	for _, n := range notes {
		log.Debug("discovery", "note", n.String())
	}
	found, names := discover.Fleet(m.GPUs, nil)
	own := devices{shown: map[int]deviceenv.Device{}, numa: local.NUMAOf(m)}
	for i, d := range found {
		own.shown[d.Index] = names[i]
	}
	found = slices.DeleteFunc(found, func(d fleet.Device) bool { return d.Foreign > 0 })
	return localrun.Machine{CPUs: m.UsableCPUs(), Memory: resource.Amount(m.MemoryBytes), Devices: found}, own, nil
}
