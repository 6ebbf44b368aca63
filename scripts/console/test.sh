#!/usr/bin/env bash
# Runs the flows of the web console in a real browser against a real server (test/console). Where the
# browser cannot be had (exit 3 of tools.sh) it says so; with CI set that is a failure.
#
#   scripts/console/test.sh
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
COX_CONSOLE=$("$here/tools.sh")
rc=$?
if [ $rc = 3 ] && [ -z "${CI:-}" ]; then
	echo "console: left out" >&2
	exit 0
fi
[ $rc = 0 ] || exit $rc
scripts/web.sh || exit
export COX_CONSOLE
set -- -count=1 -timeout 10m
if [ -n "${COX_TESTS:-}" ]; then
	exec "$COX_TESTS" --format pkgname-and-test-fails --hide-summary=skipped --rerun-fails="${RERUN:-2}" --rerun-fails-max-failures=10 --rerun-fails-run-root-test \
		--jsonfile "${COX_REPORT:?}/console.json" --packages=./test/console -- "$@"
fi
exec "${GO:-go}" test "$@" ./test/console
