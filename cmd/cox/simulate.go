package main

import (
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/sched/demo"
)

func simulateCommand() *cobra.Command {
	var which string
	cmd := &cobra.Command{
		Use:   "simulate --demo deadlock",
		Short: "Run the scheduling core on simulated time",
		Long: `Runs the scheduling core, the same code that cox run uses, on simulated time.

The only demonstration so far is "deadlock": two 5-GPU gangs on 8 GPUs, placed
task by task and as gangs. Simulating a trace is not built yet.`,
		Example: "  cox simulate --demo deadlock",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if which != "deadlock" {
				return fault.New(fault.Invalid, "--demo %q: there is no such demonstration", which).Advise("there is one: --demo deadlock")
			}
			return demo.Deadlock(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&which, "demo", "", "the demonstration: deadlock")
	return cmd
}
