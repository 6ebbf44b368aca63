// Package slurmtest compares what Coxswain reads with what a real Slurm reads.
//
// Its tests hand the same scripts, values and host lists to the packages
// spec/sbatch, slurmfmt and hostlist, and to the sbatch and scontrol commands of a
// running controller, and want the same answer: both accept, or both refuse for the
// same kind of reason, and what both accept comes to the same job. Where an answer
// differs on purpose, a table in this package says so and why; a difference that is
// not listed fails the test, and so does a listed one that is gone.
//
// The controller is the lab of scripts/slurm/up.sh, named by the environment
// variable COX_SLURM_LAB; without it the comparisons are skipped (make slurm starts a
// lab for them). A sample of the public scripts is compared, with COX_SLURM_ALL=1 all
// of them. Jobs are tested or submitted held and cancelled again:
// nothing runs. How jobs are scheduled and what they see when they run is not
// compared here.
//
// The lab knows the partitions, nodes, features and kinds of GPU that the public
// scripts of spec/sbatch/testdata name (scripts/slurm/site.conf), so that a script
// is refused for what is wrong with it and not for where it came from.
// go test ./test/slurm -run Site -update writes that file anew.
package slurmtest
