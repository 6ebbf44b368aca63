// Package sattach is Slurm's sattach: it shows the output of a step that an srun elsewhere runs,
// from now on, and passes input on to its tasks. Package agent/step/srun has the code
// (Attachment); here are the options and the way to the job's first node.
//
// The step and its srun do not wait for sattach: one that does not read is cut off. The end of
// sattach, by Ctrl-C too, does not end the step.
package sattach
