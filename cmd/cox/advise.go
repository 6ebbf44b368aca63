package main

import (
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/fault"
)

func (a *app) adviseCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "advise FILE",
		Short:   "Say which engine and runtime work belongs to, and by which rules",
		Example: "  cox advise train.sbatch",
		RunE: func(*cobra.Command, []string) error {
			return fault.New(fault.Unsupported, "cox advise is not built yet")
		},
	}
}
