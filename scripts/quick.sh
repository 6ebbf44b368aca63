#!/usr/bin/env bash
# The inner loop: go vet and the unit tests of the packages that changed since the last commit
# (or in it, where nothing changed since), and of those that import them. Results that cannot
# have changed come from Go's cache. Proofs, and tests that need a real cluster, are make test's.
#
#   scripts/quick.sh [REVISION]     what changed since REVISION
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
changed() { { git diff --name-only --diff-filter=d "$1" && git ls-files --others --exclude-standard; } | grep -E '\.go$|/testdata/' || true; }
files=$(changed "${1:-HEAD}")
[ -n "$files" ] || [ -n "${1:-}" ] || files=$(changed HEAD~1)
all=$($go list -f '{{.Dir}}|{{.ImportPath}}|{{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./...)
root=$PWD picked=$(mktemp)
trap 'rm -f "$picked"' EXIT
for f in $files; do
	dir=${f%%/testdata/*}
	[ "$dir" != "$f" ] || dir=$(dirname "$f")
	awk -F'|' -v d="$root/$dir" '$1 == d {print $2}' <<<"$all"
done | sort -u >"$picked"
if [ ! -s "$picked" ]; then
	echo "quick: no Go package has changed"
	exit 0
fi
packages=$(awk -F'|' 'NR == FNR {changed[$1]; next}
	{ use = $2 in changed; n = split($3, i, " "); for (k = 1; k <= n && !use; k++) use = i[k] in changed; if (use) print $2 }' "$picked" <(echo "$all"))
tests=$(grep -vE '/test/(simulate|hardcase|kill|linear|load|security|tables|bench)(/|$)' <<<"$packages" || true)
echo "quick: $(wc -l <"$picked") packages changed, $(wc -w <<<"$packages") with those that import them"
# shellcheck disable=SC2086 # several packages
$go vet $packages
# shellcheck disable=SC2086
[ -z "$tests" ] || timeout 80 $go test -vet=off -short $tests | grep -v 'no test files'
