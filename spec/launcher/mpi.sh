# The hostfile, as Open MPI and DeepSpeed read it: NODE slots=RANKS.
hostfile=$(mktemp "${TMPDIR:-/tmp}/cox-hostfile.XXXXXX") || exit
trap 'rm -f "$hostfile"' EXIT
export COX_HOSTFILE=$hostfile WORLD_SIZE=$SLURM_NTASKS
i=0
IFS=, read -ra counts <<<"$SLURM_TASKS_PER_NODE"
for c in "${counts[@]}"; do # 2(x3),1
	times=1
	[[ $c =~ \(x([0-9]+)\)$ ]] && times=${BASH_REMATCH[1]}
	for ((k = 0; k < times; k++)); do
		echo "${nodes[i++]} slots=${c%%(*}" >>"$hostfile"
	done
done

# Around each rank: the names that torch and others read, and the GPUs that are this rank's.
rank='
export RANK=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-0}}} # mpiexec of MPICH leaves PMIX_RANK of the step that started it
export LOCAL_RANK=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-0}}
gpus=$1 && shift
if [ "$gpus" -gt 0 ]; then
	for mask in CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES GPU_DEVICE_ORDINAL; do
		[ -n "${!mask:-}" ] || continue
		IFS=, read -ra all <<<"${!mask}"
		mine=("${all[@]:LOCAL_RANK*gpus:gpus}")
		export "$mask=$(IFS=,; echo "${mine[*]}")"
	done
fi
exec "$@"
'
# By its name alone: Open MPI takes a path for its prefix, and puts that before the srun of the job.
mpirun=mpirun
command -v mpirun >/dev/null || mpirun=mpiexec
command -v "$mpirun" >/dev/null || {
	echo "launcher: mpi: neither mpirun nor mpiexec is in PATH on $(hostname): load the MPI that the program was built with before you submit, or use an image that has it" >&2
	exit 127
}
ask=()
case $("$mpirun" --version 2>&1) in
*"Open MPI"* | *OpenRTE* | *PRRTE* | *prte*)
	[ "$UID" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT{,_CONFIRM}=1 PRTE_ALLOW_RUN_AS_ROOT{,_CONFIRM}=1
	ask=(--bind-to none)
	;;
esac
"$mpirun" -n "$SLURM_NTASKS" "${ask[@]}" bash -c "$rank" rank "$gpus_per_rank" "${command[@]}"
