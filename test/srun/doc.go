// Package srun tests srun outside of an allocation with a server, supervisors and tasks that
// are real processes: what it does there is what Slurm's srun does.
package srun
