#!/usr/bin/env bash
# Run every fuzz target of the repository for FUZZTIME each (default 30s).
set -euo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-30s}
grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do
  pkg=$(dirname "$file")
  grep -o '^func Fuzz[A-Za-z0-9_]*' "$file" | cut -c6- | while read -r target; do
    echo "== $pkg $target ($time)"
    go test "$pkg" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
  done
done
