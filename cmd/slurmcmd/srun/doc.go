// Package srun is srun outside of an allocation: it submits a job, and runs the command as
// the job's step once the job has its nodes. The step's code is that of srun inside of a job
// (package agent/step/srun), in this process: standard input, output, signals, labels and exit
// codes are the same.
//
// The job names a socket of this process. On the job's first node a holder connects to
// it (package agent/step/holder) and keeps the allocation until the step has ended or this
// process is gone. Where the nodes are not of this machine, because the server or the pool of
// the job is elsewhere, the job runs the step itself: its output is followed through the
// API, signals go through the API, and standard input is not passed on, which is said.
//
// The package has no terminal for tasks (--pty) and no heterogeneous jobs: these are refused.
package srun
