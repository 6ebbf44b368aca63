#!/usr/bin/env bash
# Runs test/slurm against a lab of its own, then the comparisons that need Slurm's
# commands alone, then the engine against whole clusters of Slurm 22.05 and 24.11, which
# its tests start and end (engine/slurm/lab), then a server with such pools. Where Slurm
# cannot be had (exit 3 of up.sh) it says so; with CI set that is a failure.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
lab=$(mktemp -d /tmp/cox-slurm.XXXXXX) || exit 1
server=
trap '[ -z "$server" ] || { pkill -P "$server"; kill "$server"; } 2>/dev/null; "$here/down.sh" "$lab"; rm -rf "$lab"' EXIT
trap 'exit 130' INT TERM
"$here/up.sh" "$lab" >/dev/null
rc=$?
if [ $rc = 3 ] && [ -z "${CI:-}" ]; then
	echo "slurm lab: left out; run make test as root for the comparison with a real sbatch" >&2
	exit 0
fi
[ $rc = 0 ] || exit $rc
go=${GO:-go}
COX_SLURM_LAB=$lab $go test -count=1 -timeout 8m ./test/slurm &&
	COXSWAIN_SBATCH=1 $go test -count=1 -run Against ./hostlist ./spec/sbatch || exit 1
"$here/down.sh" "$lab"
# Clusters mostly wait for each other: the whole server's tests run beside the engine's.
COX_SLURM=1 $go test -count=1 -timeout "${COX_SLURM_TIMEOUT:-20m}" -run "^TestSlurm" ./cmd/cox ./test/kill >"$lab/server.out" 2>&1 &
server=$!
COX_SLURM=1 $go test -count=1 -p 2 -parallel 6 -timeout "${COX_SLURM_TIMEOUT:-20m}" ./engine/slurm/...
rc=$?
wait $server || rc=1
cat "$lab/server.out"
exit $rc
