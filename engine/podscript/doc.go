// Package podscript writes the batch script that runs the pods of a Kubernetes manifest where there is
// no Kubernetes: on this machine and on Slurm.
//
// The model. A job of kind job.Pods has a podspec.Set in the place of a script: task group i is role i,
// and each task is a pod. Render makes a batch script of it, which an engine runs as any other. The
// script finds out on which nodes the tasks are, writes the files of the pods there (a hosts file with
// the names of all pods, ConfigMaps, Secrets, directories for emptyDir), and starts each container of a
// pod as a step. It ends as the Set says, and removes what it has written.
//
// A container runs by srun's own options where srun has them (Runtime.Srun: this machine, pyxis), and
// else by a command of the node that srun starts (Runtime.Box).
//
// Values of secrets are never in the script: it reads them from what the launch hands over.
//
// The package is pure: it makes text of text. Check refuses, by field, what no script can have.
package podscript
