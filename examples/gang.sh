#!/bin/sh
# A gang without a batch script: four copies of a shell command on four nodes,
# started together or not at all. COX names the program, if it is not in PATH.
exec ${COX:-cox} run --nodes 4 -n 4 -- sh -c '
	echo "rank $SLURM_PROCID of $SLURM_NTASKS on ${SLURMD_NODENAME:-$(hostname)}, job $SLURM_JOB_ID"
'
