// Package holder keeps an allocation for a client outside of it that runs the steps
// itself, as srun and salloc do.
//
// The model. The client listens at a unix socket and submits a job that names it
// (job.Program.Client). On the job's first node the supervisor starts a holder in place of a
// command. The holder connects to the client and says where the allocation's file is. It
// lives until the client says how the job ends, or is gone. Then it ends in that way, and
// the job with it. Signals do not end it: the client learns of an end from its steps. Only that
// of a bare allocation ends by SIGTERM (BareWord).
//
// A job without a client on its node (a bare allocation of another machine, or of nobody) has
// a holder too. That one lives until a command beside it says how the job ends (EndWord), or
// the control plane ends the job.
//
// The package starts no steps and sets no time limit.
package holder
