#!/usr/bin/env bash
# Runs test/clients: programs that others wrote for Slurm, unchanged, against a server with the names
# of Slurm's commands. Where a client cannot be had (exit 3 of install.sh) it says so; with CI set that
# is a failure.
#
#   scripts/clients/test.sh                 all clients
#   scripts/clients/test.sh CLIENT…         some
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
COX_CLIENTS=$("$here/install.sh" "$@")
rc=$?
if [ $rc = 3 ] && [ -z "${CI:-}" ]; then
	echo "clients: left out; they come from PyPI and Maven Central" >&2
	exit 0
fi
[ $rc = 0 ] || exit $rc
export COX_CLIENTS
only=.
[ $# = 0 ] || only="^Test($(echo "$*" | tr -d - | tr ' ' '|'))\$"
set -- -count=1 -timeout 15m -parallel 8 -run "(?i)$only"
if [ -n "${COX_TESTS:-}" ]; then
	exec "$COX_TESTS" --format pkgname-and-test-fails --hide-summary=skipped --rerun-fails="${RERUN:-2}" --rerun-fails-max-failures=10 \
		--jsonfile "${COX_REPORT:?}/${COX_SUITE:-clients}.json" --packages=./test/clients -- "$@"
fi
exec "${GO:-go}" test "$@" ./test/clients
