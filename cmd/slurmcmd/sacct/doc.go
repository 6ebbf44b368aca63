// Package sacct is Slurm's sacct: jobs of the store, ended ones included, and their steps. What
// Slurm measures and Coxswain does not (virtual memory, pages, energy) is empty.
package sacct
