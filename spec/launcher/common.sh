# free_port ADDRESS: a port of this node on which nobody listens. Jobs of one server, and users of one
# machine, begin at different ones.
free_port() {
	local port=$((20000 + (SLURM_JOB_ID * 131 + UID * 17) % 10000))
	while (exec 3<>"/dev/tcp/$1/$port") 2>/dev/null; do
		port=$((port + 1))
	done
	echo "$port"
}

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
[ "${#nodes[@]}" -gt 0 ] || { echo "launcher: scontrol does not say which nodes the job has" >&2; exit 1; }
export MASTER_ADDR=${nodes[0]}
MASTER_PORT=$(free_port "$MASTER_ADDR")
export MASTER_PORT
# A step asks for what the job asked a task for, if these are set; the launcher's has all of a node.
unset SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_GPUS_PER_TASK SLURM_NTASKS_PER_NODE SLURM_TRES_PER_TASK
