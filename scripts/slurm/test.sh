#!/usr/bin/env bash
# Runs test/slurm against a lab of its own, then the comparisons that need Slurm's
# commands alone, then the engine against whole clusters of Slurm 22.05 and 24.11, which
# its tests start and end (engine/slurm/lab), then a server with such pools. Where Slurm
# cannot be had (exit 3 of up.sh) it says so; with CI set that is a failure.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
lab=$(mktemp -d /tmp/cox-slurm.XXXXXX) || exit 1
beside=()
trap 'for p in "${beside[@]}"; do { pkill -P "$p"; kill "$p"; } 2>/dev/null; done; "$here/down.sh" "$lab"; rm -rf "$lab"' EXIT
trap 'exit 130' INT TERM
"$here/up.sh" "$lab" >/dev/null
rc=$?
if [ $rc = 3 ] && [ -z "${CI:-}" ]; then
	echo "slurm lab: left out; run make test as root for the comparison with a real sbatch" >&2
	exit 0
fi
[ $rc = 0 ] || exit $rc
go=${GO:-go}
# Clusters mostly wait, so all runs beside each other. What takes longest begins first: the
# six storms and the contract by six ways.
beside() {
	out=$1
	shift
	COX_SLURM=1 COX_SLURM_LAB=$lab $go test -count=1 -timeout "${COX_SLURM_TIMEOUT:-20m}" "$@" >"$lab/$out.out" 2>&1 &
	beside+=($!)
}
beside storms -parallel 12 -run '^Test(Storm|Conformance)$' ./engine/slurm
beside server -run '^TestSlurm' ./cmd/cox ./test/kill
beside reader ./test/slurm
COXSWAIN_SBATCH=1 $go test -count=1 -run Against ./hostlist ./spec/sbatch &&
	COX_SLURM=1 $go test -count=1 -p 2 -parallel 3 -timeout "${COX_SLURM_TIMEOUT:-20m}" -skip '^Test(Storm|Conformance)$' ./engine/slurm/...
rc=$?
for p in "${beside[@]}"; do wait "$p" || rc=1; done
beside=()
cat "$lab"/{storms,server,reader}.out
exit $rc
