// Package env makes the environment of a job's processes: Slurm's variables for the
// batch script and for the tasks of steps, and the variables by which programs find
// their GPUs.
//
// The model. variables.go is the table of all variables, from which docs/reference/environment.md
// is made. A row computes its value from an envScope: an allocation, and for a task its
// step and place in it. Batch and Task fill an environment from the table, on top of
// what the submission or srun exports.
//
// The package reads no environment of its own process and knows nothing of drivers:
// how a device is named comes with the allocation (package deviceenv).
package env
