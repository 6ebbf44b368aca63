// Package squeue is Slurm's squeue: the jobs that wait and run. It asks for the
// columns that are printed and for no others, and takes the list as text, so that a
// long queue costs the server and the command little.
//
// Steps (-s) are shown as far as the server knows them: the batch script of each
// running job.
package squeue
