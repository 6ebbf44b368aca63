# On each node: torchrun, with this node's number. The first node's address and port are where all meet.
agent='
ranks=$1 && shift
[ "$ranks" -gt 0 ] || ranks=${SLURM_GPUS_ON_NODE:-1}
torchrun=(torchrun)
command -v torchrun >/dev/null || torchrun=(python3 -m torch.distributed.run)
exec "${torchrun[@]}" --nnodes="$SLURM_NNODES" --node_rank="$SLURM_NODEID" --nproc_per_node="$ranks" \
	--master_addr="$MASTER_ADDR" --master_port="$MASTER_PORT" "$@"
'
exec srun --nodes="${#nodes[@]}" --ntasks="${#nodes[@]}" --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit="$kill_on_bad_exit" \
	bash -c "$agent" torchrun "$ranks_per_node" "${command[@]}"
