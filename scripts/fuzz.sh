#!/usr/bin/env bash
# Run fuzz targets one after the other, each with one worker at the lowest priority:
#
#   scripts/fuzz.sh                          every target
#   scripts/fuzz.sh 'control|server'         those whose "package target" matches
#   FUZZTIME=20m scripts/fuzz.sh FuzzJournal for so long each (default 30s)
#
# Prints executions and findings of each. Goes on after a finding, which go test has
# written to testdata/fuzz/TARGET/ as a case of the ordinary tests, and exits with 1 at
# the end. Little is spent on making new inputs smaller: by default that takes a minute
# each where goroutines let the coverage vary, and nothing else runs. The corpus that is found on the way stays in Go's cache.
set -uo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-30s} pattern=${1:-.}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export GOMAXPROCS=${GOMAXPROCS:-1}

targets() {
  grep -r --include='*_test.go' -o '^func Fuzz[A-Za-z0-9_]*' . |
    sed 's|^\./\(.*\)/[^/]*:func \(.*\)|\1 \2|' | sort -u | grep -E -- "$pattern"
}

found=0 ran=0
while read -r pkg target; do
  ran=$((ran + 1))
  if nice -n 19 go test "./$pkg" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 20x -parallel 1 >"$log" 2>&1; then
    what=ok
  else
    what=FAILED found=$((found + 1))
  fi
  execs=$(grep -o 'execs: [0-9]*' "$log" | tail -1 | cut -d' ' -f2)
  news=$(grep -o 'total: [0-9]*' "$log" | tail -1 | cut -d' ' -f2)
  printf '%-24s %-18s %6s  %10s executions, %5s in the corpus\n' "$pkg" "$target" "$what" "${execs:-0}" "${news:-0}"
  [ "$what" = ok ] || sed 's/^/    /' "$log" | tail -40
done < <(targets)
echo "$ran targets, $found with a finding"
[ "$ran" -gt 0 ] || { echo "no target matches $pattern" >&2; exit 2; }
[ "$found" -eq 0 ]
