// Package sbcast is Slurm's sbcast: it copies a file to every node of a job.
//
// The model. sbcast runs itself as a step with one task on each node (the file is the step's
// standard input, and goes over its connections), and each task writes a new file beside the
// destination and renames it. So the destination is whole or not there. Virtual nodes of one
// machine share its file system: one of them writes.
package sbcast
