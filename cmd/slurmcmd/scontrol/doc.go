// Package scontrol is Slurm's scontrol outside of a job's own allocation: showing
// jobs, nodes, partitions and the configuration, and changing jobs and nodes. Each
// command is one request; a list of jobs is changed in one step.
//
// Host lists (show hostnames, hostlist) and a job's own allocation are package step's.
package scontrol
