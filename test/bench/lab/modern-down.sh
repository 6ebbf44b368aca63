#!/usr/bin/env bash
# Ends what modern.sh started in a folder, by the process numbers noted there.
#
#   test/bench/lab/modern-down.sh LAB
set -u
LAB=${1:?usage: modern-down.sh LAB}
LAB=$(cd "$LAB" && pwd -P) || exit 2
ours() { tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep -q -e "$LAB/" -e '^sleep infinity' -e slurmrestd; }
holder=$(cat "$LAB/run/holder.own" 2>/dev/null)
for name in slurmrestd slurmd.m1 slurmd.m2 slurmd.m3 slurmd.m4 slurmd.m5 slurmd.m6 slurmd.m7 slurmd.m8 slurmctld holder; do
	pid=$(cat "$LAB/run/$name.own" 2>/dev/null) || continue
	ours "$pid" || continue
	kill "$pid" 2>/dev/null
	for ((n = 0; n < 200; n++)); do
		ours "$pid" || break
		[ $n = 190 ] && kill -9 "$pid" 2>/dev/null
		sleep 0.05
	done
	rm -f "$LAB/run/$name.own"
done
