#!/usr/bin/env bash
# Runs test/slurm against a lab of its own, then the comparisons that need Slurm's
# commands alone, then the engine against whole clusters of Slurm 22.05 and 24.11, which
# its tests start and end (test/testcluster/slurmlab), then a server with such pools. Where Slurm
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
# A test that fails is run again at most twice (COX_TESTS is gotestsum); the report of make test counts it as failed.
tests() {
	local name=$1 packages=$2
	shift 2
	export COX_SLURM=1 COX_SLURM_LAB=$lab
	if [ -n "${COX_TESTS:-}" ]; then
		"$COX_TESTS" --format pkgname-and-test-fails --hide-summary=skipped --rerun-fails="${RERUN:-2}" --rerun-fails-max-failures=10 \
			--rerun-fails-abort-on-data-race --jsonfile "${COX_REPORT:-$lab}/slurm-$name.json" --packages="$packages" -- -count=1 -timeout "${COX_SLURM_TIMEOUT:-20m}" "$@"
	else
		# shellcheck disable=SC2086 # several packages
		$go test -count=1 -timeout "${COX_SLURM_TIMEOUT:-20m}" "$@" $packages
	fi
}
beside() {
	tests "$@" >"$lab/$1.out" 2>&1 &
	beside+=($!)
}
beside storms ./driver/slurm -parallel 12 -run '^Test(Storm|Conformance)$'
beside server "./cmd/cox ./test/kill ./test/tutorial" -run '^TestSlurm'
beside reader ./test/slurm
COXSWAIN_SBATCH=1 $go test -count=1 -run Against ./model/hostlist ./spec/sbatch &&
	tests rest "./driver/slurm/... ./test/testcluster/slurmlab" -p 2 -parallel 3 -skip '^Test(Storm|Conformance)$'
rc=$?
for p in "${beside[@]}"; do wait "$p" || rc=1; done
beside=()
cat "$lab"/{storms,server,reader}.out
exit $rc
