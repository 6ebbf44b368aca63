// Package trace reads records of what real machines ran: the Standard Workload
// Format of the Parallel Workloads Archive and the CSV forms in which traces of GPU
// clusters were published. All become one kind of Job, so that a simulation does not
// know where its work comes from.
//
// Reading is strict: a line that is not what its format says ends it with the file,
// the line and the field. What is well formed but could not have run (no width, no
// run time) is left out and counted.
//
// It is not part of the core and reads files. It knows nothing of nodes: what a
// job of so many processors or GPUs asks of a fleet is decided by who simulates it.
package trace
