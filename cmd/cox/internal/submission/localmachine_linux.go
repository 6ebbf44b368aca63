package submission

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/agent/devicelock"
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
func openLocal(log *slog.Logger, f *runFlags, own devices) func(context.Context, string, localrun.Room, bool) (engine.Engine, error) {
	return func(ctx context.Context, dir string, room localrun.Room, temporary bool) (engine.Engine, error) {
		naming, why := local.NamedByAddr, ""
		if !f.byAddress {
			naming, why = local.FindNaming(ctx, cli.SlurmBinaryPath())
		}
		if why != "" {
			log.Info(why)
		}
		seed, err := local.AddressSeed(dir, dir)
		if err != nil {
			return nil, err
		}
		net, err := local.OpenNetwork(local.NetworkRequest{Mode: f.network, Naming: naming, Root: dir, Nodes: local.NodeNames(room.Names, len(room.Nodes)), Temporary: temporary, Log: log})
		if err != nil {
			return nil, err
		}
		nodes := local.VirtualRoom(local.RoomConfig{Naming: naming, Seed: seed, Names: room.Names, Address: net.Address}, room.Nodes)
		cfg := local.Config{Root: dir, Nodes: nodes, Cox: cli.SlurmBinaryPath(), Naming: naming, Network: net.Network, Log: log, Shown: discover.Shown(own.shown), NUMA: own.numa, Devices: deviceLocker(dir), Share: f.share, ShareAdvice: shareAdvice}
		if temporary {
			cfg.Tether = tether
		}
		e, err := local.New(cfg)
		if err != nil {
			return nil, errors.Join(err, net.Close()) // not e: a nil *Engine is no nil engine.Engine
		}
		return &engineWithNetwork{Engine: e, net: net}, nil
	}
}

// engineWithNetwork gives the nodes' network back when the engine is closed.
type engineWithNetwork struct {
	*local.Engine
	net *local.OpenedNetwork
}

// Close closes the engine, and then the network: the engine's idle supervisors have ended by then.
func (e *engineWithNetwork) Close() error { return errors.Join(e.Engine.Close(), e.net.Close()) }

// shareAdvice is what to do where somebody else has taken a device at this moment.
const shareAdvice = "try again, or wait for it; --share runs the job all the same: two jobs are on one GPU then, slow each other down and may run out of its memory"

// deviceLocker takes the locks of the machine's devices for a run whose engine has a root.
func deviceLocker(root string) *devicelock.Locker {
	return &devicelock.Locker{Owner: devicelock.NewOwner("cox run", "", filepath.Dir(root), ""), Folders: devicelock.Folders()}
}

// freeDevices takes out of a machine's devices those that others have. A run that goes on in a state
// directory of before has what its jobs there hold.
func freeDevices(m *localrun.Machine, stateDir string) error {
	root := filepath.Join(stateDir, "engine")
	l := deviceLocker(root)
	l.Owner.Identity = rand.Text()
	if _, err := os.Stat(root); err == nil && stateDir != "" {
		if l.Owner.Identity, err = attempt.DeviceOwner(root); err != nil {
			return err
		}
	}
	locks, errs := l.TakeAll(m.Devices)
	locks.Release()
	for _, err := range errs {
		var held *devicelock.HeldError
		if !errors.As(err, &held) {
			continue // no lock can be taken: the engine says so
		}
		m.Held = append(m.Held, held.Device)
		m.Devices = slices.DeleteFunc(m.Devices, func(d fleet.Device) bool { return d.Index == held.Device.Index })
		m.Holder = devicelock.Refusal(errs)
	}
	return nil
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
