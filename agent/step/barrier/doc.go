// Package barrier starts a process that waits before it becomes its program.
//
// The model. Hold.Start spawns this binary again; that process (Main) reads its orders
// from an inherited pipe, applies them, reports that it is ready and waits for one
// byte. Held.Go sends it, and the process execs the program; Held.Close ends the
// process without running anything. The batch script, the tasks of steps and commands
// of cox exec all start so.
//
// Guarantees: the program does not run before Go; the process ends if its starter does,
// as the pipe closes; the exit code says why a program could not be executed, as a
// shell does or as srun's tasks do.
//
// The package does not reap: a Spawner owns the process and learns of its end.
package barrier
