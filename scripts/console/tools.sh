#!/usr/bin/env bash
# Installs what drives the web console in a browser: Debian's chromium (as root, where it is not there),
# and the packages of web/flows into a folder of the cache, which it prints. COX_CHROMIUM names another
# browser of that kind.
#
#   scripts/console/tools.sh
#
# Exit 3: they are not there and cannot be had.
set -euo pipefail
cd "$(dirname "$0")/../.."
cache=${COX_CACHE:-$HOME/.cache/coxswain}/console
mkdir -p "$cache"
exec 9>"$cache.lock"
flock 9
node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)' 2>/dev/null && command -v npm >/dev/null || { echo "the tests of the web console need Node 20 or newer and npm" >&2; exit 3; }
if ! command -v "${COX_CHROMIUM:-chromium}" >/dev/null; then
	{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium fonts-dejavu-core; } >"$cache/apt.log" 2>&1 ||
		{ tail -3 "$cache/apt.log" >&2; echo "apt-get install chromium failed: this needs Debian, its package sources and root" >&2; exit 3; }
fi
if ! cmp -s web/flows/package-lock.json "$cache/installed.json"; then
	cp web/flows/package.json web/flows/package-lock.json "$cache/"
	(cd "$cache" && npm ci --cache "$cache/npm" --no-audit --no-fund --loglevel=error >&2) || { echo "npm ci failed: the packages of web/flows come from a registry of npm" >&2; exit 3; }
	cp web/flows/package-lock.json "$cache/installed.json"
fi
echo "$cache"
