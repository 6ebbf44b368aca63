// Package step is the allocation of a job as its own processes see it: nodes, task
// groups, devices, and a step as it was placed in it. The packages below it run steps.
//
// The model. An Alloc says what the processes of one attempt may know of it; its
// file is named by the variable COX_ALLOC. Package env makes the environment of the
// batch script and of tasks from it. On every node of the allocation a node.Node
// serves a unix socket: it starts tasks held, opens their barrier when told, passes
// their input, output and signals, and reports their end. The Node of the first
// node also allocates: with package place it gives steps their numbers, their nodes,
// CPUs and devices, and lets those wait that do not fit beside the running ones.
// Package srun asks it for a step, prepares the step on every node of it, and opens
// the barrier only when all tasks on all nodes are held: a step starts whole or not
// at all. A held task is this binary again (barrier.Main), which execs the program.
// Package wire is what srun and Nodes say to each other. Package scontrol shows the
// job to its own processes. Package holder keeps an allocation for an srun outside of it.
//
// Imports point one way: step, barrier ← wire ← place, env ← node; wire, env ← srun; step ← holder.
//
// Guarantees of the whole: no task runs its program before every task of its step is
// held; a step's resources are given on only when its processes on every node are
// gone; when srun dies, its tasks are ended; a task's output is in its rank log before
// srun sees it.
//
// These packages do not start or supervise nodes, do not limit memory or CPU, and do
// not reap: a barrier.Spawner, which the supervisor implements, owns every process.
package step
