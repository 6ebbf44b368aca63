// Package plane is a whole control plane on this machine for tests: the server as
// package serve puts it together, the embedded engine on virtual nodes, real
// processes as jobs, and what a test needs to tell a story with them.
//
// A Plane's server runs inside the test's process or, where it is to be killed, as a
// process of its own; both are this test's binary, which also stands for the
// supervisors, srun and Slurm's commands (Main). Jobs leave evidence of their own: lines
// in a Diary, and they wait at a Gate until the test opens it. Nothing is timed: a
// test waits for what must come (Await), and a deadline of minutes ends one that waits
// in vain. What a test started is gone when it ends, whatever became of it.
//
// It judges nothing: what must hold stands in the tests.
package plane

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/holder"
	stepscontrol "github.com/coxswain-sched/coxswain/agent/step/scontrol"
	"github.com/coxswain-sched/coxswain/agent/step/srun"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sacct"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/salloc"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sattach"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sbatch"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sbcast"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scancel"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scontrol"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sinfo"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/squeue"
	slurmsrun "github.com/coxswain-sched/coxswain/cmd/slurmcmd/srun"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/model/srunopt"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/daemon"
)

// Fault changes a server that is to fail in a certain way.
type Fault func(*daemon.Options)

// commands are Slurm's commands that ask a server.
var commands = map[string]func([]string, slurmcmd.Stdio) int{
	"srun": slurmsrun.Main, "sbatch": sbatch.Main, "squeue": squeue.Main, "scancel": scancel.Main, "sinfo": sinfo.Main, "sacct": sacct.Main, "scontrol": scontrol.Main,
	"salloc": salloc.Main, "sattach": sattach.Main, "sbcast": sbcast.Main,
}

// Main is TestMain: the test binary is also every other program of a plane. Faults are
// those that StartProcess can name.
func Main(m *testing.M, faults map[string]Fault) {
	name := filepath.Base(os.Args[0])
	switch {
	case name == "srun" && step.IsOwn(srunopt.JobOf(os.Args[1:], os.Environ()), os.Getenv):
		os.Exit(srun.Main(os.Args[1:], step.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	case name == "scontrol" && len(os.Args) > 2 && os.Args[2] == "hostnames": // it asks no server
		os.Exit(stepscontrol.Main(os.Args[1:], step.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	case commands[name] != nil:
		os.Exit(commands[name](os.Args[1:], slurmcmd.Stdio{Environ: os.Environ()}))
	case len(os.Args) > 2 && os.Args[1] == "supervise":
		os.Exit(local.SuperviseMain(os.Args[2:]))
	case len(os.Args) > 2 && os.Args[1] == "task-init":
		os.Exit(barrier.Main(os.Args[2:]))
	case len(os.Args) > 2 && os.Args[1] == holder.Command:
		os.Exit(holder.Main(os.Args[2:]))
	case len(os.Args) == 4 && os.Args[1] == serverArg:
		os.Exit(serverMain(os.Args[2], faults[os.Args[3]]))
	}
	os.Exit(m.Run())
}

// serverArg is the hidden first argument of a server's process: then come the file with
// its configuration and the name of a fault.
const serverArg = "plane-server"

func serverMain(file string, fault Fault) int {
	var cfg config.Config
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &cfg)
	}
	if err == nil {
		opt := daemon.Options{Config: cfg, Version: "test", Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Ready: func(daemon.Info) { fmt.Println("ready") }}
		if fault != nil {
			fault(&opt)
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		err = daemon.Run(ctx, opt)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
