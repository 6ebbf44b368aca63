package cli

import "github.com/coxswain-sched/coxswain/api"

// JobExitCode is the exit code for a job that has ended, as cox run has it: the job's
// own where it has one (docs/reference/exit-codes.md).
func JobExitCode(j *api.Job) int {
	switch j.State {
	case "COMPLETED":
		return 0
	case "TIMEOUT", "DEADLINE":
		return 124
	case "OUT_OF_MEMORY":
		return 137
	case "CANCELLED":
		return 130
	case "NODE_FAIL", "LOST", "BOOT_FAIL":
		return 75
	}
	return max(j.Exit.Shell(), 1)
}
