// Package compat compares what the core decides with what a real slurmctld decides.
//
// A Case is a small site with a queue, made from a number: nodes with features and
// GPUs, a topology tree, partitions with tiers, jobs in the words of sbatch. In
// each of three rounds some of them are submitted and some of those that run end, all between two looks of the schedulers. What the main scheduler and the
// backfill scheduler start then, in order and on which nodes, is read from
// slurmctld's log. The nodes are CLOUD nodes that are never there: jobs that were
// started hold their nodes until they are cancelled.
//
// What slurmctld decided stands in testdata. The tests ask the core for each decision
// again, from the state in which slurmctld made it, so that one difference is counted
// once. go test ./test/slurm/compat -record makes the records anew with the lab of
// COX_SLURM_LAB.
package compat
