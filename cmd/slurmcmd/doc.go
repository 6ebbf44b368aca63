// Package slurmcmd is what Slurm's command names have in common: streams, options as
// getopt reads them, errors in Slurm's words, users by name or number. Each name is
// a package of its own below (cmd/slurmcmd/squeue, cmd/slurmcmd/sbatch …) with one function Main,
// which takes the arguments without the command's name and returns the exit code.
//
// The commands know nothing but the HTTP API, through package api/fastclient; they read no
// state and decide nothing. What they print by default, their options, messages and
// exit codes are those of Slurm, as docs/reference/slurm-commands.md lists; what they cannot
// do they refuse by name.
//
// They start thousands of times: nothing here may cost start-up time.
package slurmcmd
