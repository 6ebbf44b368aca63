// Command cox is Coxswain: one control plane for GPU work. This package only puts the
// commands together. They are in packages by noun below internal (submission, jobs,
// interactive, nodes, pools, policy, server, registry, tools), on what all share (cli). cmd/printer makes the
// text that they print, and api/client asks the server.
//
// The tests here are those of the whole binary: scripts, transcripts, terminals,
// signals, and real engines.
//
// The binary answers to several names. As srun or scontrol it is the command that
// a job's script calls; with a hidden first argument it is the supervisor of a node
// or a held task. These paths touch nothing that costs start-up time.
//
// The commands that ask a server build on every system that Go knows; what runs or
// serves work needs Linux (slurmnames_linux.go, and *_linux.go in the packages).
package main

import (
	"context"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/interactive"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/jobs"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/nodes"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/policy"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/pools"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/registry"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/schedules"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/secrets"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/server"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/services"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/submission"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/tools"
)

func main() { os.Exit(dispatch(os.Args)) }

// dispatch chooses by the name under which the binary was called.
func dispatch(argv []string) int {
	if code, ok := runByName(argv); ok {
		return code
	}
	a := cli.New()
	return a.Execute(context.Background(), rootCommand(a), argv[1:])
}

// rootCommand is cox with all its commands.
func rootCommand(a *cli.App) *cobra.Command {
	root := a.Root()
	root.AddCommand(slices.Concat(
		submission.Commands(a), services.Commands(a), schedules.Commands(a), secrets.Commands(a), jobs.Commands(a), interactive.Commands(a), nodes.Commands(a), pools.Commands(a), policy.Commands(a), server.Commands(a), registry.Commands(a), tools.Commands(a),
	)...)
	return root
}
