#!/usr/bin/env bash
# Runs the tests of engine/kube, and of a server with such pools, against real clusters of
# Kubernetes, which they start and end (engine/kube/lab). Where one cannot be had (exit 3 of
# build.sh and packages.sh) it says so; with CI set that is a failure.
#
#   scripts/kube/test.sh [batch]
#
# batch: the tests beside Volcano and Kueue alone, which batch.sh builds.
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
# A test that fails is run again once, and said at the end (COX_TESTS is gotestsum).
again=$(mktemp) || exit 1
trap 'rm -f "$again"' EXIT
tests() {
	packages=$1
	shift
	if [ -n "${COX_TESTS:-}" ]; then
		"$COX_TESTS" --format pkgname-and-test-fails --hide-summary=skipped --rerun-fails="${RERUN:-1}" --rerun-fails-max-failures=4 \
			--rerun-fails-abort-on-data-race --rerun-fails-report="$again" --packages="$packages" -- -count=1 -timeout "${COX_KUBE_TIMEOUT:-20m}" "$@"
	else
		# shellcheck disable=SC2086 # several packages
		$go test -count=1 -timeout "${COX_KUBE_TIMEOUT:-20m}" "$@" $packages
	fi
	rc=$?
	cat "$again" && [ -s "$again" ] && echo "a test that has to be run again is a defect (CONTRIBUTING.md)"
	return $rc
}
if [ "${1:-}" = batch ]; then
	export COX_BATCH=1
	tests ./engine/kube -run '^Test(Volcano|Kueue)$'
	exit
fi
tests "./engine/kube/..." -p 1 -parallel 2 && tests "./serve ./cmd/cox" -run Kube
