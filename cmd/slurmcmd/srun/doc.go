// Package srun is srun outside of an allocation: it submits a job that runs a command
// in every task, shows what the tasks print, passes on signals and ends with the
// job's exit code. Inside a job srun is package step's.
//
// With a server on this machine's socket the tasks write into a named pipe that srun
// reads, so that nothing is polled; elsewhere the output is followed through the API.
// Standard input is passed on if it is a file. What needs a terminal or steps (--pty,
// --multi-prog, --label) is refused: use cox exec, or sbatch with srun inside.
package srun
