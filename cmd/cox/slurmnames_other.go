//go:build !linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// runByName refuses Slurm's names, which need Linux.
func runByName(argv []string) (code int, ok bool) {
	name := filepath.Base(argv[0])
	if !slices.Contains(slurmfmt.Commands, name) {
		return 0, false
	}
	fmt.Fprintf(os.Stderr, "%s: error: Slurm's names need Linux; here use cox itself: cox submit, cox queue, cox cancel\n", name)
	return fault.Unsupported.ExitCode(), true
}
