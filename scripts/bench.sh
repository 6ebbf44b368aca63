#!/usr/bin/env bash
# The figures of docs/explanation/benchmarks.md. RUNS runs each (default 7); medians are printed
# with the range. Where a Slurm lab runs (scripts/slurm/up.sh; COX_SLURM_LAB names
# it), its srun starts the same gang in the same run, for the ratio.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${RUNS:-7}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 go build -trimpath -o "$work/" ./cmd/cox ./cmd/cox-slurm

echo "machine: $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg), $(go version | cut -d' ' -f3)"
echo
echo "first rank of a gang, from the start of the command (ms)"
RUNS=$runs python3 scripts/bench_start.py "$work/cox"
echo
echo "process start, CPU time of the user and the system (ms)"
RUNS=$runs python3 scripts/bench_exec.py "$work/cox-slurm"
echo
go test -run '^$' -bench . -benchtime 1s -count 3 ./sched/... ./spec/sbatch ./store/sqlite 2>&1 | grep -E '^(Benchmark|pkg)' || true
