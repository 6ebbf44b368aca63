#!/usr/bin/env bash
# Builds the web console of web/ui into web/dist, where cox embeds it. Packages and everything else
# that is downloaded or made on the way is kept in the cache, outside the work tree.
#   scripts/web.sh          an error without Node 20
#   scripts/web.sh --try    without Node 20 says so, and leaves web/dist as it is
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v npm >/dev/null || ! node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)' 2>/dev/null; then
	echo "web: the web console needs Node 20 or newer and npm" >&2
	[ "${1:-}" = --try ] || exit 1
	echo "web: cox is built without it" >&2
	exit 0
fi
[ -f web/ui/package.json ] || { echo "web: there is no web/ui/package.json" >&2; exit 1; }
cache=${COX_CACHE:-$HOME/.cache/coxswain}/web
sum=$(git ls-files -z --cached --others --exclude-standard web/ui docs/reference/openapi.json scripts/web.sh | sort -z | xargs -0 sha256sum | sha256sum)
if [ -f web/dist/index.html ] && [ "$(cat web/dist/.sum 2>/dev/null)" = "$sum" ]; then
	exit 0 # it is built already
fi
stage=$cache/$(sha256sum <web/ui/package-lock.json | cut -c1-12) # of all checkouts, one after the other
mkdir -p "$stage/web/ui" "$stage/docs/reference"
exec 9>"$stage/lock"
flock 9
find "$stage/web/ui" -mindepth 1 -maxdepth 1 ! -name node_modules -exec rm -rf {} +
git ls-files -z --cached --others --exclude-standard web/ui docs/reference/openapi.json | while IFS= read -r -d '' f; do
	[ ! -f "$f" ] || { mkdir -p "$stage/$(dirname "$f")"; cp "$f" "$stage/$f"; }
done
cd "$stage/web/ui"
npm=(npm)
if [ "$(npm --version | cut -d. -f1)" -lt 11 ]; then # an older one does not install Vite 8
	npm install --prefix "$cache/npm11" --cache "$cache/npm" --no-audit --no-fund --loglevel=error npm@11
	npm=(node "$cache/npm11/node_modules/npm/bin/npm-cli.js")
fi
if ! cmp -s package-lock.json node_modules/.package-lock.cox; then
	# npm ci refuses a lock file without an optional package, such as one for Windows that a registry
	# does not have. npm install takes the same versions, with the same checksums.
	"${npm[@]}" install --no-save --cache "$cache/npm" --no-audit --no-fund --loglevel=error
	cp package-lock.json node_modules/.package-lock.cox
fi
rm -rf "$stage/web/dist"
"${npm[@]}" run --silent build
cd - >/dev/null
find web/dist -mindepth 1 ! -name .keep -delete
cp -r "$stage/web/dist/." web/dist/
: >web/dist/.keep
echo "$sum" >web/dist/.sum
