#!/usr/bin/env bash
# Unpacks nginx and wrk from Debian's packages into a folder of the cache and prints it; installs
# nothing and needs no root. wrk needs LD_LIBRARY_PATH: its own libluajit is in usr/lib/TRIPLET.
#
#   scripts/gateway/tools.sh
#
# Exit 3: they are not there and cannot be had.
set -euo pipefail
cache=${COX_CACHE:-$HOME/.cache/coxswain}/gateway-bench
mkdir -p "$cache"
exec 9>"$cache.lock"
flock 9
if [ ! -x "$cache/usr/sbin/nginx" ] || [ ! -x "$cache/usr/bin/wrk" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	(cd "$work" && apt-get download nginx wrk libluajit2-5.1-2 >/dev/null 2>&1) || { echo "apt-get download nginx wrk libluajit2-5.1-2 failed: this needs Debian and its package sources" >&2; exit 3; }
	for d in "$work"/*.deb; do dpkg -x "$d" "$cache"; done
fi
echo "$cache"
