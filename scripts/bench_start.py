#!/usr/bin/env python3
"""Time from the start of a command to the first and last rank of the gang it starts.

Each rank prints the time at which it runs; the clock is the machine's. Peers are
measured in the same rounds, one after the other, so that all see the same load.
"""
import os
import shutil
import statistics
import subprocess
import sys
import time

RUNS = int(os.environ.get("RUNS", "7"))
RANK = ["sh", "-c", "date +%s%N"]


def ranks(argv, want, env=None):
    """Start argv; return (first, last) rank in ms after the start."""
    start = time.time_ns()
    out = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env, check=True).stdout
    at = sorted(int(w) for w in out.split() if w.isdigit() and len(w) == 19)
    assert len(at) == want, out
    return (at[0] - start) / 1e6, (at[-1] - start) / 1e6


def main():
    cox = sys.argv[1]
    cases = {
        "cox run, 1 node, 1 rank": ([cox, "run", "-Q", "--raw", "--"] + RANK, 1, None),
        "cox run, 4 nodes, 4 ranks": ([cox, "run", "-Q", "--raw", "--nodes", "4", "--"] + RANK, 4, None),
        "cox run, 4 nodes, 8 ranks": ([cox, "run", "-Q", "--raw", "--nodes", "4", "-n", "8", "--"] + RANK, 8, None),
    }
    lab = os.environ.get("COX_SLURM_LAB")
    if lab and shutil.which("srun"):
        env = dict(os.environ, SLURM_CONF=os.path.join(lab, "slurm.conf"))
        cases["Slurm srun, 4 nodes, 4 ranks"] = (["srun", "-N4", "-n4"] + RANK, 4, env)
    got = {name: [] for name in cases}
    for _ in range(RUNS):
        for name, (argv, want, env) in cases.items():
            got[name].append(ranks(argv, want, env))
    for name, figures in got.items():
        first, last = [f[0] for f in figures], [f[1] for f in figures]
        print(f"{name:32} first {statistics.median(first):6.0f} [{min(first):.0f}–{max(first):.0f}]   last {statistics.median(last):6.0f} [{min(last):.0f}–{max(last):.0f}]")


if __name__ == "__main__":
    main()
