// Package slurmjson writes what Slurm's commands print for --json: the shape of the
// data parser v0.0.42, which Slurm 24.11 has for its own. Every field of Slurm's that
// a script may read is there; those that say something of Slurm alone have its empty
// value.
//
// It appends text and builds no tree: a queue of 100,000 jobs is written as fast as
// it can be read. An answer carries meta, errors and warnings beside the list, as
// Slurm's does.
package slurmjson
