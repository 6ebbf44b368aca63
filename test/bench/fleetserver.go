package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// fleetServer is the whole server (API, control, journal on disk, core) over an engine
// in memory whose nodes take work and never get ready, as nodes do that slurmctld
// waits for: decisions are real, execution is not. It runs until SIGTERM.
func fleetServer(dir, nodes string) error {
	n, err := strconv.Atoi(nodes)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	world := fake.NewWorld(fake.Config{
		Now: time.Now, Nodes: fleetNodes(n),
		Script: func(*engine.Launch) fake.Outcome { return fake.Outcome{Ready: fake.Never} },
	})
	db, err := sqlite.Open(dir)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	e := world.Open()
	plane, err := control.Open(ctx, control.Config{
		Store: db, Pools: []pools.Pool{{Pool: fleet.Pool{Name: "fake", Engine: "fake"}, Engine: e}}, Clock: wallClock{}, Log: log, Who: "test/bench",
		Keep: time.Hour, JournalKeep: time.Hour, HistoryKeep: time.Hour,
	})
	if err != nil {
		return err
	}
	srv := server.New(server.Config{
		Plane: plane, Users: &user.Users{}, Log: log, Now: time.Now, Name: "bench",
	})
	socket, err := transport.ListenSocket(filepath.Join(dir, "s"))
	if err != nil {
		return err
	}
	err = srv.Serve(ctx, []net.Listener{socket}...)
	return errors.Join(err, plane.Close(), e.Close(), db.Close())
}

// wallClock is the machine's clock.
type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// fleetNodes are nodes of 64 CPUs, 500 GiB and 8 GPUs, 32 at a leaf, as
// lab/fleet.sh gives them to Slurm.
func fleetNodes(n int) []fleet.Node {
	out := make([]fleet.Node, n)
	for i := range out {
		out[i] = fleet.Node{
			Name: fmt.Sprintf("n%d", i+1), State: fleet.Up, Path: []string{"spine", fmt.Sprintf("leaf%d", i/32+1)}, Sockets: 2,
			Capacity: resource.Vector{CPU: resource.CPUs(64), Memory: 500 * resource.GiB},
		}
		for g := range 8 {
			out[i].Devices = append(out[i].Devices, fleet.Device{Index: g, Minor: g, Kind: "gpu", Type: "h100", NUMA: g / 4, Memory: 80 * resource.GiB})
		}
	}
	return out
}
