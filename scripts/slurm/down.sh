#!/usr/bin/env bash
# Ends what up.sh started in the same folder, and nothing else. Logs stay.
#
#   scripts/slurm/down.sh [LAB]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lab.sh"
lab_dir "${1:-}"
exec 9>"$LAB/lock"
flock 9
stop "$LAB/slurmctld.pid" slurmctld
stop "$LAB/munged.pid" munged
rm -f "$LAB/munge.sock" "$LAB/munge.sock.lock"
