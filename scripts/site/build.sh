#!/usr/bin/env bash
# Builds the documentation as a static site with a search, in bin/site. The tools are installed into
# the cache the first time.
set -euo pipefail
cd "$(dirname "$0")/../.."
cache=${COX_CACHE:-$HOME/.cache/coxswain}/site
if ! cmp -s scripts/site/requirements.txt "$cache/requirements.txt"; then
	rm -rf "$cache"
	python3 -m venv "$cache"
	"$cache/bin/pip" install --quiet --disable-pip-version-check -r scripts/site/requirements.txt
	cp scripts/site/requirements.txt "$cache/requirements.txt"
fi
NO_MKDOCS_2_WARNING=1 "$cache/bin/mkdocs" --quiet build --strict
echo "bin/site/index.html"
