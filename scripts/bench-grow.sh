#!/usr/bin/env bash
# How the figures of the core grow with the fleet and the queue: a table for
# docs/explanation/benchmarks.md. STEPS steps are measured in each cell (default 20000) after WARM
# others (default 2000). NODES, PENDING and RULES choose rows, as regular expressions.
# Each cell is the median of RUNS runs (default: 5 for 10,000 nodes and 100,000 or more
# pending jobs, 1 for others). A run that takes longer than LIMIT seconds (default 300)
# is left out and said.
set -euo pipefail
cd "$(dirname "$0")/.."
steps=${STEPS:-20000} warm=${WARM:-2000} limit=${LIMIT:-300}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go test -c -o "$work/sched.test" ./sched
cd sched
echo "machine: $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg), $(go version | cut -d' ' -f3); $steps steps after $warm"
echo
echo "| rules | nodes × 8 GPUs | pending | p50 µs | p99 µs | p99.9 µs | starts/s | bytes a job | allocations a step |"
echo "|---|---|---|---|---|---|---|---|---|"
for rules in none all; do
	for nodes in 1000 10000 100000; do
		for pending in 10000 100000 1000000; do
			[[ $rules =~ ^(${RULES:-.*})$ && $nodes =~ ^(${NODES:-.*})$ && $pending =~ ^(${PENDING:-.*})$ ]] || continue
			runs=1
			[[ $nodes/$pending =~ ^10000/100000 ]] && runs=5
			: >"$work/runs"
			for _ in $(seq "${RUNS:-$runs}"); do
				timeout "$limit" "$work/sched.test" -test.run '^$' -test.benchtime "${steps}x" -warm "$warm" \
					-test.bench "^BenchmarkGrowth\$/^rules=$rules\$/^nodes=$nodes\$/^pending=$pending\$" | grep '^Benchmark' >>"$work/runs" || true
			done
			if [[ ! -s $work/runs ]]; then
				echo "| $rules | $nodes | $pending | not within $limit s | | | | | |"
				continue
			fi
			printf '| %s | %s | %s |' "$rules" "$nodes" "$pending"
			for unit in p50-us p99-us p99.9-us starts/s B/job allocs/op; do
				printf ' %s |' "$(awk -v u="$unit" '{ for (i = 2; i < NF; i++) if ($(i + 1) == u) print $i }' "$work/runs" | sort -g |
					awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')"
			done
			echo
		done
	done
done
