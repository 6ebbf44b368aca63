package slurmfmt

// Commands are the names of Slurm's commands to which cox-slurm answers.
var Commands = []string{"srun", "sbatch", "squeue", "scancel", "sinfo", "sacct", "scontrol", "sshare", "sprio", "sstat", "seff", "salloc", "sattach", "sbcast"}
