# Ray keeps its files in a directory of this job: other users' and other jobs' Ray do not meet it. It is
# short, since sockets are in it.
RAY_TMPDIR=$(mktemp -d /tmp/cox-ray.XXXXXX) || exit
export RAY_TMPDIR RAY_ADDRESS=$MASTER_ADDR:$MASTER_PORT RAY_API_SERVER_ADDRESS=http://127.0.0.1:$((MASTER_PORT + 1))
export RAY_USAGE_STATS_ENABLED=${RAY_USAGE_STATS_ENABLED:-0}
command -v ray >/dev/null || {
	echo "launcher: ray: no ray is in PATH on $(hostname): submit from the environment that has it (pip install 'ray[default]'), or use an image" >&2
	exit 127
}

# On each node: Ray, the first as the head. It ends by the end of its step, never by "ray stop", which
# ends every Ray of the user on the machine.
agent='
mkdir -p "$RAY_TMPDIR" && trap "rm -rf $RAY_TMPDIR" EXIT
start=(ray start --block --num-cpus="$1" --num-gpus="${SLURM_GPUS_ON_NODE:-0}" --dashboard-agent-listen-port=$((MASTER_PORT + 10 + SLURM_NODEID)))
if [ "$SLURM_NODEID" = 0 ]; then
	start+=(--head --port="$MASTER_PORT" --dashboard-host=127.0.0.1 --dashboard-port=$((MASTER_PORT + 1)) --ray-client-server-port=$((MASTER_PORT + 2)))
else
	until (exec 3<>"/dev/tcp/$MASTER_ADDR/$MASTER_PORT") 2>/dev/null; do sleep 0.2; done
	start+=(--address="$RAY_ADDRESS")
fi
unset RAY_ADDRESS
"${start[@]}" >"$RAY_TMPDIR/start.$SLURM_NODEID" 2>&1 &
trap "kill $!" TERM INT
wait $!
code=$?
[ "$code" -lt 128 ] && tail -n 3 "$RAY_TMPDIR/start.$SLURM_NODEID" >&2
exit "$code"
'
cpus=${SLURM_CPUS_ON_NODE:-1}
said=$(mktemp "${TMPDIR:-/tmp}/cox-ray-said.XXXXXX") || exit # by the nodes: shown where they fail
trap 'rm -rf "$said" "$RAY_TMPDIR"' EXIT
srun --nodes="${#nodes[@]}" --ntasks="${#nodes[@]}" --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit="$kill_on_bad_exit" \
	bash -c "$agent" ray "$cpus" 2>"$said" &
gang=$!

# The driver starts when all nodes are in.
await='
import os, sys, time, ray
ray.init(address=os.environ["RAY_ADDRESS"], logging_level="ERROR", log_to_driver=False)
while len([n for n in ray.nodes() if n["Alive"]]) < int(sys.argv[1]):
    time.sleep(0.2)
'
python=$(sed -n "1s/^#! *//p" "$(command -v ray)")
(
	until (exec 3<>"/dev/tcp/$MASTER_ADDR/$MASTER_PORT") 2>/dev/null; do sleep 0.2; done
	exec $python -c "$await" "${#nodes[@]}"
) &
await_pid=$!
if ! wait -n "$gang" "$await_pid" || ! kill -0 "$gang" 2>/dev/null; then
	cat "$said" >&2
	echo "launcher: ray: its ${#nodes[@]} nodes did not come together" >&2
	exit 1
fi
echo "ray: ${#nodes[@]} nodes at $RAY_ADDRESS; jobs: cox exec $SLURM_JOB_ID -- ray job submit --address $RAY_API_SERVER_ADDRESS -- COMMAND" >&2
"${command[@]}" &
driver=$!
trap 'kill -TERM $driver 2>/dev/null' TERM
wait -n "$gang" "$driver"
code=$?
if kill -0 "$driver" 2>/dev/null && [ "$kill_on_bad_exit" = 1 ]; then
	cat "$said" >&2
	echo "launcher: ray: Ray ended on a node, and the driver is stopped" >&2
	kill -TERM "$driver"
	wait "$driver" 2>/dev/null
	exit 1
fi
if kill -0 "$driver" 2>/dev/null; then # nodes may go
	wait "$driver"
	code=$?
fi
kill -TERM "$gang" 2>/dev/null
wait "$gang"
exit "$code"
