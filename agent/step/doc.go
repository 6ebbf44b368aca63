// Package step is what happens inside an allocation: srun's steps over its nodes,
// scontrol's view of it, and the environment that Slurm programs expect.
//
// The model. An Alloc says what the processes of one attempt may know of it; its
// file is named by the variable COX_ALLOC. On every node of the allocation a Node
// serves a unix socket: it starts tasks held, opens their barrier when told, passes
// their input, output and signals, and reports their end. The Node of the first
// node is also the arbiter: it gives steps their numbers, their nodes, CPUs and
// devices, and lets those wait that do not fit beside the running ones. srun
// (SrunMain) asks the arbiter, prepares the step on every node of it, and opens the
// barrier only when all tasks on all nodes are held: a step starts whole or not at
// all. A held task is this binary again (TaskInitMain), which execs the program.
//
// Guarantees: no task runs its program before every task of its step is held; a
// step's resources are given on only when its processes on every node are gone;
// when srun dies, its tasks are ended; a task's output stands in its rank log
// before srun sees it.
//
// The package does not start or supervise nodes, does not limit memory or CPU, and
// does not reap: a Spawner, which the supervisor implements, owns every process.
package step
