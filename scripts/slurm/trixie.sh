#!/usr/bin/env bash
# Unpacks a newer Debian with its Slurm (24.11) into a root directory in the cache, for
# test/testcluster/slurmlab, and prints its name. What is there already stays: the second time it
# takes no time. Nothing of it is started, and nothing is mounted.
#
#   scripts/slurm/trixie.sh [ROOT]     default ${COX_CACHE:-~/.cache/coxswain}/slurm-trixie
#
# The packages come from where this machine's own come from. Exit 3: it cannot be had here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lab.sh"
lab_dir ""
PATH=$PATH:/usr/sbin:/sbin
ROOT=${1:-${COX_CACHE:-${HOME:?}/.cache/coxswain}/slurm-trixie}
exec 9>"$ROOT.lock"
flock 9
packages=slurmctld,slurmd,slurmdbd,slurmrestd,slurm-client,slurm-wlm-basic-plugins,slurm-wlm-mysql-plugin,slurm-wlm-jwt-plugin
# What jobs use there: Open MPI with PMIx, Python. It is added to a root directory that runs.
more=(libopenmpi40 libpmix2t64 python3)
add() {
	[ "$(cat "$ROOT/.more" 2>/dev/null)" != "${more[*]}" ] || return 0
	say "adding ${more[*]} to $ROOT"
	inside() { chroot "$ROOT" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5 "$@" >>"$LAB/trixie-more.log" 2>&1 </dev/null 9>&-; }
	inside install --no-install-recommends -y "${more[@]}" || { inside update && inside install --no-install-recommends -y "${more[@]}"; } ||
		die 3 "apt-get in $ROOT could not install ${more[*]}: see $LAB/trixie-more.log"
	rm -rf "$ROOT/var/cache/apt/archives"/*.deb
	echo "${more[*]}" >"$ROOT/.more"
}
if [ "$(cat "$ROOT/.ready" 2>/dev/null)" = "$packages" ]; then
	add
	echo "$ROOT"
	exit
fi
[ "$(id -u)" = 0 ] || die 3 "a root directory is made by root alone"
install_packages -- debootstrap:debootstrap
# The mirror of this machine's own Debian.
mirror=$(apt-get indextargets --format '$(SITE)' 'Origin: Debian' 'Created-By: Packages' 2>/dev/null | grep -v security | head -n 1)
mirror=${mirror:-$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep /debian | grep -v security | head -n 1)}
[ -n "$mirror" ] || die 3 "apt-get names no mirror of Debian"
say "unpacking Debian trixie with Slurm into $ROOT"
rm -rf --one-file-system "$ROOT" "$ROOT.new"
debootstrap --variant=minbase --include="$packages" trixie "$ROOT.new" "$mirror" >"$LAB/debootstrap.log" 2>&1 </dev/null 9>&- ||
	die 3 "debootstrap failed: see $LAB/debootstrap.log"
rm -rf "$ROOT.new/var/cache/apt/archives"/*.deb
echo "127.0.0.1 localhost $(hostname)" >"$ROOT.new/etc/hosts"
mv "$ROOT.new" "$ROOT"
echo "$packages" >"$ROOT/.ready"
add
echo "$ROOT"
