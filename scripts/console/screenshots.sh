#!/usr/bin/env bash
# Draws the pages of the web console anew into docs/images/console, from a real server and browser.
#
#   scripts/console/screenshots.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
COX_CONSOLE=$(scripts/console/tools.sh)
scripts/web.sh
mkdir -p docs/images/console
COX_SHOTS=$PWD/docs/images/console
export COX_CONSOLE COX_SHOTS
"${GO:-go}" test -count=1 ./test/console -run '^TestScreenshots$'
