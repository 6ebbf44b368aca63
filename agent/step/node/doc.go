// Package node is the node side of steps: it serves srun, and holds, starts, signals
// and watches the tasks of steps on one node of a job.
//
// The model. The supervisor of each node makes one Node and serves a unix socket with
// it. A connection either asks for a step (the first node's place.Allocator gives it
// resources), brings the tasks of a step to hold and then follows srun's orders, or
// runs a command beside the tasks (exec.go). A nodeStep is a step on this node, a task
// one of its processes.
//
// Guarantees: only the job's owner, root and this process's user are served; tasks at
// their barrier are ended without running anything; a step is over here only when
// nothing of it lives and its output was sent; Close returns when everything that the
// Node started has ended.
//
// The package does not start processes itself (barrier.Spawner) and does not limit
// them.
package node
