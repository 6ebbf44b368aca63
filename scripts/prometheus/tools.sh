#!/usr/bin/env bash
# Unpacks Debian's prometheus and promtool into a folder of the cache and prints it; installs nothing
# and needs no root. The programs are in usr/bin there.
#
#   scripts/prometheus/tools.sh
#
# Exit 3: they are not there and cannot be had.
set -euo pipefail
cache=${COX_CACHE:-$HOME/.cache/coxswain}/prometheus
mkdir -p "$cache"
exec 9>"$cache.lock"
flock 9
if [ ! -x "$cache/usr/bin/prometheus" ] || [ ! -x "$cache/usr/bin/promtool" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	(cd "$work" && { apt-get download prometheus || { apt-get update && apt-get download prometheus; }; } >/dev/null 2>&1) ||
		{ echo "apt-get download prometheus failed: this needs Debian and its package sources" >&2; exit 3; }
	dpkg -x "$work"/*.deb "$work/x"
	mkdir -p "$cache/usr/bin"
	install -m 755 "$work/x/usr/bin/prometheus" "$work/x/usr/bin/promtool" "$cache/usr/bin/"
fi
echo "$cache"
