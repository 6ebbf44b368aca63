// Package sacct is Slurm's sacct: jobs of the store, ended ones included. What Slurm
// measures and Coxswain does not (memory that a step used, disk, energy) is empty.
//
// Steps: the batch script is shown as JOB.batch, with the job's times and exit code.
package sacct
