#!/usr/bin/env bash
# How the figures of the core grow with the fleet and the queue: a table for
# docs/benchmarks.md. STEPS steps are measured in each cell (default 5000) after WARM
# others (default 2000). NODES, PENDING and RULES choose rows, as regular expressions.
# A cell that takes longer than LIMIT seconds (default 600) is left out and said.
set -euo pipefail
cd "$(dirname "$0")/.."
steps=${STEPS:-5000} warm=${WARM:-2000} limit=${LIMIT:-600}
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
			line=$(timeout "$limit" "$work/sched.test" -test.run '^$' -test.benchtime "${steps}x" -warm "$warm" \
				-test.bench "^BenchmarkGrowth\$/^rules=$rules\$/^nodes=$nodes\$/^pending=$pending\$" | grep '^Benchmark' || true)
			if [[ -z $line ]]; then
				echo "| $rules | $nodes | $pending | not within $limit s | | | | | |"
				continue
			fi
			awk -v rules="$rules" -v nodes="$nodes" -v pending="$pending" '{
				for (i = 2; i < NF; i++) v[$(i + 1)] = $i
				printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", rules, nodes, pending, v["p50-us"], v["p99-us"], v["p99.9-us"], v["starts/s"], v["B/job"], v["allocs/op"]
			}' <<<"$line"
		done
	done
done
