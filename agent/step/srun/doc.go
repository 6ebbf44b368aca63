// Package srun is srun inside of an allocation: it reads the command line, gets a step
// from the first node, holds its tasks on all nodes, starts them together, and passes
// input, output and signals until they have ended.
//
// The model. options.go and values.go read options, as the table of package srunopt
// says; plan.go completes them from the environment and the allocation; client.go
// follows the step from its creation to its exit code.
//
// Guarantees: the step starts whole or not at all; the exit code is the highest of its
// tasks', without those that srun itself ended after a failure; lines of different
// tasks do not mix.
//
// Outside of an allocation srun submits a job: see cmd/slurmcmd/srun.
package srun
