// Package sinfo is Slurm's sinfo: partitions and nodes. Nodes with the same values in
// all columns that are not sums, lists or ranges become one line.
package sinfo
