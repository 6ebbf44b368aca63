# --- the same for all pods ---

_cox_srun=$(command -v srun) && scontrol=$(command -v scontrol) || { echo "pods: no srun is in PATH" >&2; exit 1; }
_cox_env=$(command -v env)
# A step asks for what the job asked a task for, if these are set; those of pods say it themselves.
unset SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_GPUS_PER_TASK SLURM_NTASKS_PER_NODE SLURM_TRES_PER_TASK SLURM_NTASKS SLURM_NPROCS SLURM_NNODES \
	SLURM_MEM_PER_CPU SLURM_MEM_PER_NODE SLURM_MEM_PER_GPU SLURM_GPUS SLURM_GPUS_PER_NODE SLURM_DISTRIBUTION

word=$(cat /proc/sys/kernel/random/uuid) && base=/tmp/cox-pods-$word # on each node
state=$(mktemp -d "${TMPDIR:-/tmp}/cox-pods-state.XXXXXX") || exit
trap 'rm -rf "$state"' EXIT
exec 3>&2 # of the job

# place_tasks GROUP: the node of each task of a group, a line for each.
place_tasks() {
	local list=SLURM_JOB_NODELIST tasks=SLURM_TASKS_PER_NODE parts part n times counts=() k=0 j node
	[ "$groups" = 1 ] || list+=_HET_GROUP_$1 tasks+=_HET_GROUP_$1
	IFS=, read -ra parts <<<"${!tasks}"
	for part in "${parts[@]}"; do
		n=${part%%(*} times=1
		case $part in *"(x"*) times=${part##*(x} times=${times%)} ;; esac
		for ((; times > 0; times--)); do counts+=("$n"); done
	done
	while read -r node; do
		for ((j = 0; j < ${counts[k]:-1}; j++)); do echo "$node"; done
		k=$((k + 1))
	done < <("$scontrol" show hostnames "${!list}")
}

# address_of NODE: its address.
address_of() {
	local ip rest
	read -r ip rest < <(getent ahostsv4 "$1" || getent ahosts "$1")
	if [ -z "$ip" ]; then # a name that Slurm alone knows
		rest=$("$scontrol" show node "$1" 2>/dev/null)
		case $rest in *NodeAddr=*) rest=${rest#*NodeAddr=} rest=${rest%%[[:space:]]*} ;; *) rest= ;; esac
		[ -z "$rest" ] || read -r ip rest < <(getent ahostsv4 "$rest" || getent ahosts "$rest")
	fi
	[ -n "$ip" ] || { echo "pods: the address of node $1 is not known" >&2; return 1; }
	echo "$ip"
}

# on_nodes COMMAND...: runs a command once on each node, with the same standard input.
on_nodes() {
	local g list n code=0 het=()
	for ((g = 0; g < groups; g++)); do
		list=SLURM_JOB_NODELIST
		[ "$groups" = 1 ] || list+=_HET_GROUP_$g het=(--het-group="$g")
		n=$("$scontrol" show hostnames "${!list}" | wc -l)
		"$_cox_srun" "${het[@]}" --quiet --overlap --nodes="$n" --ntasks="$n" --ntasks-per-node=1 --job-name=pods "$@" <"$state/input" || code=$?
	done
	return "$code"
}

# clear_variables leaves those by which srun finds its job, and its own.
clear_variables() {
	local v
	for v in $(compgen -e); do
		case $v in
		SLURM_* | SRUN_* | COX_* | PATH | LD_LIBRARY_PATH | LANG | TZ | *_proxy | *_PROXY) ;;
		HOME | USER | LOGNAME | TMPDIR | XDG_* | ENROOT_* | APPTAINER_* | CONTAINERS_*) [ "$ours" = 0 ] || unset "$v" ;;
		*) unset "$v" ;;
		esac
	done
}

# end_step SIGNAL PID STEP: asks a step to end, or ends it.
end_step() {
	local id of job=SLURM_JOB_ID
	if [ "$ours" = 1 ]; then # srun asks first, and ends what is asked again
		kill -TERM "$2"
		return
	fi
	[ "$groups" = 1 ] || job+=_HET_GROUP_$role # a component has a number of its own
	squeue --noheader --steps --jobs="${!job:-$SLURM_JOB_ID}" --format='%i %j' | while read -r id of; do
		[ "$of" != "$3" ] || scancel --signal="$1" "$id"
	done
} 2>/dev/null

# await PID: the exit code of a child of this shell, whatever signals come meanwhile.
await() {
	local code
	while :; do
		poked=
		wait "$1" 2>/dev/null
		code=$?
		[ -n "$poked" ] && kill -0 "$1" 2>/dev/null || return "$code"
	done
}

# run_pod ROLE INDEX: one pod, in a shell of its own.
run_pod() {
	local role=$1 k how code=0 c delay=10 pids=() steps=() sidecars=0 ending= nap= _cox_step
	# A container may have variables of any name that does not begin with _cox_: these are used beside them.
	local _cox_i=$2 _cox_name=${names[$1.$2]} _cox_node=${node_of[$1.$2]} _cox_ip=${ip_of[$1.$2]} _cox_uid=${uid_of[$1.$2]}
	local _cox_pod=$base/$_cox_node/$_cox_name
	trap 'poked=1' TERM
	trap 'poked=1 ending=1; [ -z "$nap" ] || kill "$nap" 2>/dev/null; for k in "${!pids[@]}"; do end_step TERM "${pids[k]}" "${steps[k]}"; done' USR1
	trap 'poked=1 ending=1; [ -z "$nap" ] || kill "$nap" 2>/dev/null; for k in "${!pids[@]}"; do end_step KILL "${pids[k]}" "${steps[k]}"; done' USR2
	k=-1
	for how in ${inits[role]}; do
		k=$((k + 1)) _cox_step=$_cox_name.init$k
		while [ -z "$ending" ]; do
			init_${role}_$k &
			pids+=($!) steps+=("$_cox_step")
			if [ "$how" = sidecar ]; then
				sidecars=$((sidecars + 1))
				break
			fi
			await $!
			c=$?
			unset "pids[-1]" "steps[-1]"
			[ $c = 0 ] && break
			echo "pods: init container $k of $_cox_name ended with exit code $c" >&3
			[ "${policy[role]}" = Never ] && return $c
			sleep "$delay" &
			nap=$!
			[ -z "$ending" ] || kill "$nap"
			await "$nap"
			nap=
			delay=$((delay < 150 ? 2 * delay : 300))
		done
	done
	[ -z "$ending" ] || return 143
	local left=()
	for k in ${mains[role]}; do
		[ -z "$ending" ] || { code=143; break; }
		_cox_step=$_cox_name
		[ "${mains[role]}" = 0 ] || _cox_step+=.$k
		main_${role}_$k &
		pids+=($!) steps+=("$_cox_step") left+=($!)
	done
	for k in "${left[@]}"; do
		await "$k"
		c=$?
		[ $code = 0 ] && code=$c
	done
	if [ $sidecars -gt 0 ]; then
		for ((k = sidecars - 1; k >= 0; k--)); do end_step TERM "${pids[k]}" "${steps[k]}"; done
		for ((k = 0; k < sidecars; k++)); do await "${pids[k]}"; done
	fi
	return $code
}

# end_pods SIGNAL: asks all pods that live to end, or ends them.
end_pods() {
	local p
	for p in "${!pid_of[@]}"; do
		[ -n "${over[$p]}" ] || kill -"$1" "${pid_of[$p]}" 2>/dev/null
	done
}

declare -A names node_of ip_of uid_of pid_of over address
printf '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n' >"$state/hosts"
total=0
for ((r = 0; r < groups; r++)); do
	mapfile -t nodes < <(place_tasks "$r")
	if [ "${#nodes[@]}" -lt "${replicas[r]}" ]; then
		echo "pods: role $r has ${replicas[r]} pods, and the job ${#nodes[@]} tasks for it" >&2
		exit 1
	fi
	for ((i = 0; i < replicas[r]; i++)); do
		node=${nodes[i]}
		if [ -z "${address[$node]}" ]; then
			address[$node]=$(address_of "$node") || exit
			echo "${address[$node]} $node" >>"$state/hosts"
		fi
		p=$r.$i
		names[$p]=$(pod_name_"$r" "$i") node_of[$p]=$node ip_of[$p]=${address[$node]} uid_of[$p]=$(cat /proc/sys/kernel/random/uuid)
		echo "${ip_of[$p]} $(names_of "$r" "${names[$p]}" "$i")" >>"$state/hosts"
		echo "$node $r $i ${names[$p]} ${ip_of[$p]} ${uid_of[$p]}" >>"$state/pods"
		total=$((total + 1))
	done
done

# The files and images of the pods, on their nodes. Values of secrets go there on standard input.
{
	echo "base=$base" # no argument, which all users see before the directory is there
	cat <<-'END'
		umask 022
		here=$base/$SLURMD_NODENAME memory=/dev/shm/${base##*/}/$SLURMD_NODENAME
		own_dir() { mkdir -m 700 "$1" 2>/dev/null || { [ ! -L "$1" ] && [ -d "$1" ] && [ -O "$1" ]; } || { echo "pods: $1 cannot be made, or is of another user" >&2; exit 1; }; }
		own_dir "$base"
		[ ! -e "$here" ] || exit 0 # by another component of the job
		mkdir "$here" || exit
		open_dir() { mkdir -p "$1" && chmod 777 "$1" || exit; }
		open_in_memory() { own_dir "/dev/shm/${base##*/}" && open_dir "$memory/${1#"$here"/}" && mkdir -p "${1%/*}" && ln -s "$memory/${1#"$here"/}" "$1" || exit; }
	END
	echo "cat >\"\$here/hosts\" <<'COX_END' && chmod 644 \"\$here/hosts\" || exit"
	cat "$state/hosts"
	echo COX_END
	for k in "${!secret_file[@]}"; do
		printf 'secret_%d() {\n\tbase64 -d <<COX_END\n%s\nCOX_END\n}\n' "$k" "$(base64 <"${secret_file[k]}")"
	done
	prepare
	cat <<-'END'
		done=
		while read -r node role i name ip uid; do
			[ "$node" = "$SLURMD_NODENAME" ] || continue
			mkdir "$here/$name" && ln "$here/hosts" "$here/$name/hosts" || exit
			"files_$role" "$here/$name" "$i" "$name" "$node" "$ip" "$uid" || exit
			case " $done " in *" $role "*) ;; *) (images_$role) </dev/null || exit; done="$done $role" ;; esac
		done <<'COX_END'
	END
	cat "$state/pods"
	echo COX_END
} >"$state/input"
stopped=
clean_up() {
	: >"$state/input"
	# A job that is being ended starts no steps: then the other nodes keep what the pods did not remove.
	[ "$ours" = 1 ] || [ -n "$stopped" ] || on_nodes sh -c 'chmod -R u+rwX "$1/$SLURMD_NODENAME" 2>/dev/null; rm -rf "$1/$SLURMD_NODENAME" "/dev/shm/${1##*/}/$SLURMD_NODENAME"; rmdir "$1" "/dev/shm/${1##*/}" 2>/dev/null; :' sh "$base"
	rm -rf "$state" "$base" "/dev/shm/${base##*/}"
}
if ! on_nodes sh -s; then
	echo "pods: the files of the pods could not be made" >&2
	clean_up
	exit 1
fi
: >"$state/input"

: >"$state/ends"
exec 4<"$state/ends"
code= left=$total
trap 'stopped=143' TERM
for ((r = 0; r < groups; r++)); do
	for ((i = 0; i < replicas[r]; i++)); do
		(
			run_pod "$r" "$i" </dev/null
			echo "$r $i $?" >>"$state/ends"
		) &
		pid_of[$r.$i]=$!
	done
done
ending= timer= lost=
while [ "$left" -gt 0 ] && [ -z "$lost" ]; do
	wait -n 2>/dev/null
	[ $? != 127 ] || lost=1 # no shell of a pod is left, whatever it has said
	if [ -n "$timer" ] && ! kill -0 "$timer" 2>/dev/null; then
		timer=
		end_pods USR2
	fi
	while read -r r i c <&4; do
		left=$((left - 1)) over[$r.$i]=1
		[ -z "$ending$stopped" ] || continue
		if [ "$c" = 0 ]; then
			if [ "$need" -gt 0 ] && { [ "${counts[r]}" = all ] || [ "${counts[r]}" = "$i" ]; }; then
				need=$((need - 1))
				[ $need -gt 0 ] || ending=0
			fi
		else
			[ -n "$code" ] || code=$c
			echo "pods: ${names[$r.$i]} on ${node_of[$r.$i]} ended with exit code $c" >&2
			[ "$keep_going" = 1 ] || ending=$c
		fi
		if [ -n "$ending" ] && [ "$left" -gt 0 ]; then
			grace_of=0
			for g in "${grace[@]}"; do [ "$g" -le "$grace_of" ] || grace_of=$g; done
			end_pods USR1
			sleep "$grace_of" &
			timer=$!
		fi
	done
done
[ -z "$timer" ] || kill "$timer" 2>/dev/null
[ "$left" = 0 ] || code=${code:-1}
clean_up
exit "${stopped:-${ending:-${code:-0}}}"
