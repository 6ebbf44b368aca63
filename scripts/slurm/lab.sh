# What up.sh and down.sh share: where the lab lies and how its processes are known.
# Sourced by them, not run.

say() { echo "slurm lab: $*" >&2; }
die() { code=$1; shift; say "$*"; exit "$code"; }

# lab_dir [DIR] sets LAB, the lab's folder.
lab_dir() {
	LAB=${1:-${COX_CACHE:-${HOME:?}/.cache/coxswain}/slurm}
	mkdir -p "$LAB"
	LAB=$(cd "$LAB" && pwd -P)
	# A Unix socket's name has at most 107 bytes, and munge puts ".lock" behind it.
	[ ${#LAB} -le 90 ] || die 2 "$LAB is too long for a socket's name: give a folder with at most 90 characters"
	[[ $LAB != *[[:space:]]* ]] || die 2 "$LAB has a blank in it, which slurm.conf cannot say"
	export SLURM_CONF=$LAB/slurm.conf
}

# running PIDFILE WORD prints the pid if it is that of a live process whose command
# line names WORD and this lab; a number that the system gave to somebody else
# meanwhile is not ours.
running() {
	local pid command
	pid=$(cat "$1" 2>/dev/null) && [ -n "$pid" ] || return 1
	command=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") || return 1
	[[ $command == *"$2"* && $command == *"$LAB/"* ]] && echo "$pid"
}

# stop PIDFILE WORD ends that process: SIGTERM, and SIGKILL after five seconds.
stop() {
	local pid n
	pid=$(running "$1" "$2") || { rm -f "$1"; return 0; }
	kill "$pid" 2>/dev/null
	for ((n = 0; n < 100; n++)); do
		running "$1" "$2" >/dev/null || break
		[ "$n" = 90 ] && kill -9 "$pid" 2>/dev/null
		sleep 0.05
	done
	rm -f "$1"
}
