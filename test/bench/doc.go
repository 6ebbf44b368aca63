// Command bench measures Coxswain against a real Slurm on the same machine in the
// same run, round by round in turn, and prints tables in Markdown with ratios.
// scripts/bench-slurm.sh builds what it needs and starts both sides.
//
// Parts, chosen by -only:
//
//	a  sbatch, squeue and sinfo as processes, one after another
//	b  from sbatch (and srun) to the job's first instruction, on an idle machine
//	c  2,000 × true, first submission to last end, and CPU a job; beside it the floor
//	d  durable submissions of distinct scripts by 16 clients
//	e  10,000 (and for us 100,000) jobs that wait: lists, JSON, cancelling all, memory
//	f  a start with 1,000,000 finished and 100,000 waiting jobs
//	g  10,000 jobs on 1,000 nodes that are not there, 1,250 jobs on 10,000: the
//	   whole server with an engine in memory, slurmctld with CLOUD nodes
//	h  waiting for, and looking at, one array of 100,001 tasks: ours alone
//	i  1,000 × srun true in one allocation
//
// CPU is that of a control group with all daemons of a side and all that they start,
// where the system has cgroups; processes that the bench starts itself are counted by
// their resource usage. Every figure is a median over rounds with its range. Nothing
// here judges; the ratios speak for the machine that they were taken on.
package main
