#!/usr/bin/env bash
# Coxswain against a real Slurm on this machine, in one run (test/bench says what is
# measured). Installs Debian's Slurm and MariaDB where they are missing (root), starts
# both sides in folders of their own, prints tables in Markdown, ends what it started.
#
#   scripts/bench-slurm.sh [PARTS]     PARTS: letters of abcdefghi, default all
#
# ROUNDS=5   rounds of each part            SMALL=1   a tenth of all sizes
# SLURM=0    ours alone                     TUNING=defaults   Slurm's scheduler as it comes
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d /tmp/cox-bench.XXXXXX)
chmod 755 "$work" # Slurm's own user goes through it
lab=
finish() {
	for l in "$lab" "$work/fleet"; do
		[ ! -d "${l:-/nowhere}" ] || test/bench/lab/down.sh "$l" || true
	done
	for g in /sys/fs/cgroup/cpuacct/cox-bench-* /sys/fs/cgroup/cox-bench-*; do
		[ ! -d "$g" ] || rmdir "$g" 2>/dev/null || true
	done
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
for c in cox cox-slurm; do CGO_ENABLED=0 ${GO:-go} build -trimpath -o "$work/$c" ./cmd/$c; done
CGO_ENABLED=0 ${GO:-go} build -trimpath -o "$work/bench" ./test/bench
if [ "${SLURM:-1}" != 0 ]; then
	lab=$work/lab
	test/bench/lab/up.sh "$lab" >/dev/null
fi
"$work/bench" -cox "$work" -lab "$lab" -only "${1:-abcdefghi}" -rounds "${ROUNDS:-5}" ${SMALL:+-small}
