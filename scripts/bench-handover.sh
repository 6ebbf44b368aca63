#!/usr/bin/env bash
# Hand-over on demand against static splits of a fleet: Philly's jobs beside the Azure and Mooncake inference
# loads. Markdown on standard output, the tables of docs/explanation/handover-on-demand.md, and a line for each
# run. SEEDS (3) is how many draws of each level are averaged: about two minutes each.
set -euo pipefail
cd "$(dirname "$0")/.."
traces=$(cd "${COX_TRACES:-../shared/traces}" && pwd)
COX_TRACES=$traces COX_STUDY=${SEEDS:-3} go test ./service/handover/study -count=1 -run '^TestPage$' -v -timeout 120m | grep -v '^\(===\|---\|PASS\|ok\)'
