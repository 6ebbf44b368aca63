#!/usr/bin/env bash
# Whole simulated outcomes on the GPU traces: EASY as Slurm runs it (first come, first
# served, one reservation, a decision each 30 s) beside Coxswain, which decides at each
# event; and both with small jobs favoured. Markdown on standard output.
set -euo pipefail
cd "$(dirname "$0")/.."
traces=${COX_TRACES:-../shared/traces}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/cox" ./cmd/cox

cluster() { # nodes of 8 GPUs, 16 to a leaf
	printf 'nodes: [{names: "gpu[1-%d]", gpus: 8, leaf: 16}]\n' "$1" >"$work/cluster.yaml"
}
cat >"$work/small-first.yaml" <<'YAML'
priority: {job_size: 10000, age: 10000, max_age: 7d, favor_small: true}
YAML

row() { # name, arguments of cox simulate
	local name=$1
	shift
	"$work/cox" simulate "$@" -o json >"$work/out.json"
	python3 - "$name" "$work/out.json" <<'PY'
import json, sys
for r in json.load(open(sys.argv[2])):
    leaves = "%.2f" % r["leaves_over_least"] if r["leaves_over_least"] else "–"
    jain = "%.3f" % r["fairness_jain"] if r["fairness_jain"] else "–"
    print("| %s | %.2f | %.2f | %.2f | %.2f | %s | %s | %d of %d | %.1f |" % (sys.argv[1], 100 * r["allocation"], 100 * r["blocked_idle"],
        r["wait_s"]["mean"] / 3600, r["bounded_slowdown"]["mean"], jain, leaves, r["promises"]["late"], r["promises"]["jobs"], r.get("took_s", 0)))
PY
}

while read -r trace nodes; do
	cluster "$nodes"
	printf '\n%s on %d nodes × 8 GPUs:\n\n' "$(basename "$trace")" "$nodes"
	echo '| | allocated % | idle in vain % | mean wait h | mean bounded slowdown | Jain | leaves ÷ least | later than promised | took s |'
	echo '|---|---|---|---|---|---|---|---|---|'
	at=("$traces/$trace" --cluster "$work/cluster.yaml")
	row "EASY in Slurm's form" "${at[@]}" --cycle 30s
	row "Coxswain" "${at[@]}"
	row "small first, Slurm's form" "${at[@]}" --cycle 30s --policy "$work/small-first.yaml"
	row "small first, Coxswain" "${at[@]}" --policy "$work/small-first.yaml"
done <<'TRACES'
lumos/philly_df_schedule.csv.gz 125
philly/sia_philly.csv.gz 47
philly/chronus_trace_job_Philly_SLO.csv.gz 30
TRACES
