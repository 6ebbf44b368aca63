#!/usr/bin/env bash
# Runs the tests of driver/kube, and of a server with such pools, against real clusters of
# Kubernetes, which they start and end (test/testcluster/kubelab). Where one cannot be had (exit 3 of
# build.sh and packages.sh) it says so; with CI set that is a failure.
#
#   scripts/kube/test.sh [batch]
#
# batch: the tests beside Volcano, Kueue and coscheduling alone, which batch.sh builds, and beside
# KAI where COX_KAI names its folder.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
for step in packages build; do
	"$here/$step.sh" >/dev/null
	rc=$?
	if [ $rc = 3 ] && [ -z "${CI:-}" ]; then
		echo "kubernetes lab: left out; run make kube as root for tests against real clusters" >&2
		exit 0
	fi
	[ $rc = 0 ] || exit $rc
done
go=${GO:-go}
export COX_KUBE=1
out=$(mktemp -d) || exit 1
beside=
trap '[ -z "$beside" ] || { pkill -P "$beside"; kill "$beside"; } 2>/dev/null; rm -rf "$out"' EXIT
trap 'exit 130' INT TERM
# tests NAME PACKAGES ARGUMENT…: a test that fails is run again at most twice (COX_TESTS is
# gotestsum); the report of make test counts it as failed.
tests() {
	local name=$1 packages=$2
	shift 2
	if [ -n "${COX_TESTS:-}" ]; then
		"$COX_TESTS" --format pkgname-and-test-fails --hide-summary=skipped --rerun-fails="${RERUN:-2}" --rerun-fails-max-failures=10 \
			--rerun-fails-abort-on-data-race --jsonfile "${COX_REPORT:-$out}/kube-$name.json" --packages="$packages" -- -count=1 -vet=off -ldflags=-w -timeout "${COX_KUBE_TIMEOUT:-30m}" "$@"
	else
		# shellcheck disable=SC2086 # several packages
		$go test -count=1 -timeout "${COX_KUBE_TIMEOUT:-30m}" "$@" $packages
	fi
}
if [ "${1:-}" = batch ]; then
	export COX_BATCH=1
	tests batch ./driver/kube -run '^Test(Volcano|Kueue|Coscheduling|KAI)$'
	exit $?
fi
# At most three clusters are beside each other, which mostly wait. One is of the lab's tests, then
# of the server's, then of the storms on a whole server, one of them with a Slurm on the same machines. Beside it is the driver's own storm, which no
# other of the driver's tests is beside, and then those, on two clusters (lab.Start lets no more be),
# of which each has several tests at once. The packages below driver/kube that start no cluster are
# make unit's.
{ tests parts ./test/testcluster/kubelab && tests server "./server/daemon ./cmd/cox" -run Kube && COX_SLURM=1 tests outlives "./test/kill ./test/tutorial" -run Kube; } >"$out/beside" 2>&1 &
beside=$!
tests storm ./driver/kube -run '^TestStorm$'
rc=$?
tests driver ./driver/kube -skip '^Test(Storm|Volcano|Kueue|Coscheduling|KAI)$' -parallel 32 || rc=1
wait "$beside" || rc=1
beside=
cat "$out/beside"
exit $rc
