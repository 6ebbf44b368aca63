#!/usr/bin/env bash
# Starts a real Slurm controller to compare with, and prints its folder.
#
#   scripts/slurm/up.sh [LAB]      LAB: a folder with a short name;
#                                  default ${COX_CACHE:-~/.cache/coxswain}/slurm
#
# Debian's packages (installed with apt-get where they are missing, without starting
# their services), munge with a key and a socket of its own, one slurmctld. Nodes are
# declared only: jobs can be tested and held, not run. No accounting database.
# $COX_SLURM_SITE names a file that slurm.conf includes: nodes, partitions, GRES types.
# Running this again is harmless, with a changed site it restarts slurmctld; down.sh
# ends the lab.
#
# Exit 0: it answers. 2: LAB cannot be used. 3: Slurm is not there and cannot be
# installed by this user. 1: it did not start; the log's end is shown.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lab.sh"
lab_dir "${1:-}"
PATH=$PATH:/usr/sbin:/sbin

# free_port prints a port that nobody listens on, above the ones that Slurm has by
# default and below those that the system hands out. It begins anywhere there, so that
# labs that start at the same time choose different ones.
free_port() {
	local p n first=$((RANDOM % 900))
	for ((n = 0; n < 900; n++)); do
		p=$((26917 + (first + n) % 900))
		(exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null || { echo "$p"; return; }
	done
	die 1 "no free port from 26917 to 27816"
}

start_munge() {
	[ -s "$LAB/munge.key" ] || (umask 077 && head -c 128 /dev/urandom >"$LAB/munge.key")
	munge -n -S "$LAB/munge.sock" >/dev/null 2>&1 && return
	stop "$LAB/munged.pid" munged
	rm -f "$LAB/munge.sock" "$LAB/munge.sock.lock"
	# --force: its own checks want every folder above the socket to be root's.
	munged --force --num-threads=2 --key-file="$LAB/munge.key" --socket="$LAB/munge.sock" \
		--pid-file="$LAB/munged.pid" --log-file="$LAB/munged.log" --seed-file="$LAB/munge.seed" >>"$LAB/start.log" 2>&1 9>&- ||
		die 1 "munged did not start: $(tail -n 3 "$LAB/munged.log" "$LAB/start.log")"
}

# write_conf writes slurm.conf, the port that it had before kept, and reports whether
# anything changed.
write_conf() {
	local port site=${COX_SLURM_SITE:-$here/site.conf}
	[ -r "$site" ] || die 2 "cannot read the site file $site"
	port=$(sed -n 's/^SlurmctldPort=//p' "$SLURM_CONF" 2>/dev/null || true)
	sed -e "s|@LAB@|$LAB|g; s|@USER@|$(id -un)|g; s|@PORT@|${port:-$(free_port)}|g" "$here/slurm.conf.in" >"$LAB/slurm.conf.new"
	cat "$site" >>"$LAB/slurm.conf.new"
	if cmp -s "$LAB/slurm.conf.new" "$SLURM_CONF"; then
		rm "$LAB/slurm.conf.new"
		return 1
	fi
	mv "$LAB/slurm.conf.new" "$SLURM_CONF"
}

# start_slurmctld starts it anew: jobs and reservations of an earlier one are gone.
start_slurmctld() {
	local n
	stop "$LAB/slurmctld.pid" slurmctld
	rm -rf "$LAB/state"
	mkdir -p "$LAB/state"
	setsid slurmctld -D -f "$SLURM_CONF" >>"$LAB/start.log" 2>&1 </dev/null 9>&- &
	echo $! >"$LAB/slurmctld.pid"
	for ((n = 0; n < 600; n++)); do
		scontrol ping 2>/dev/null | grep -q 'is UP' && return
		running "$LAB/slurmctld.pid" slurmctld >/dev/null || break
		sleep 0.05
	done
	rm -f "$SLURM_CONF" # so that another port is tried the next time
	die 1 "slurmctld did not start: $(tail -n 5 "$LAB/start.log" "$LAB/slurmctld.log" 2>&1)"
}

exec 9>"$LAB/lock"
flock 9
: >"$LAB/start.log"
install_packages slurm-wlm-basic-plugins -- sbatch:slurm-client slurmctld:slurmctld munged:munge
start_munge
if write_conf || ! running "$LAB/slurmctld.pid" slurmctld >/dev/null || ! scontrol ping | grep -q 'is UP'; then
	start_slurmctld
fi
say "$(sbatch --version) answers on port $(sed -n 's/^SlurmctldPort=//p' "$SLURM_CONF")"
echo "$LAB"
