// Package salloc is Slurm's salloc: it gets nodes, runs a command or a shell on this machine in
// whose environment srun starts steps on them, and gives the nodes back when that ends.
//
// The model. salloc submits an allocation (api.FormAllocation), in which nothing runs, and renews
// its lease as long as it lives. A salloc that is killed leaves a lease that ends, and the
// allocation with it. On the server's own machine the job's holder also connects to salloc
// (package step/holder): it ends at once when salloc is gone, and gives the allocation its exit
// code. On another machine salloc takes the variables of the allocation from its first node.
//
// Options are those of sbatch that are about nodes, and salloc's own: see Options.
package salloc
