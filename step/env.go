package step

// BatchEnv is the environment of the batch script on a node (0: the first): what
// the submission exports of base, and Slurm's variables. base is not changed.
func BatchEnv(a *Alloc, base []string, node int) []string { return base }
