// Package container runs the processes of a job inside a container image, by a runtime that the
// machine has: podman, apptainer, docker or enroot.
//
// The model. A container runs one program of ours, its init (Main), which the runtime starts like
// any other program. The init connects to a socket of the supervisor that started the runtime, and
// from then on starts processes for it: tasks of steps, the batch script, commands of cox exec. So
// all tasks of a node share one container, as with pyxis, and their files, terminals, signals and
// exit codes are those of ordinary processes. A Box is the supervisor's end; it implements
// barrier.Spawner.
//
// Guarantees: the init ends when its supervisor does, and a runtime kills what is left in a
// container whose init has ended. The supervisor learns the process number of the init from the
// kernel and checks itself that it belongs to the job: see package supervise.
//
// It does not run a registry, unpack layers or make namespaces: these are the runtime's. What a
// runtime is told are pure functions of a Spec (Runtime.Start and its like).
package container
