// Package sbatch is Slurm's sbatch: it hands a batch script to the server with
// sbatch's own command line, the environment and the working directory. The server
// reads the script's directives and all options; what it says of them comes back
// with file and line.
//
// The number is printed when the job is durable.
package sbatch
