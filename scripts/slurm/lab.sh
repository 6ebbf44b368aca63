# What the scripts here share: where a lab lies, how its processes are known, how Debian's
# packages are installed.
# Sourced by them, not run.

say() { echo "slurm lab: $*" >&2; }
die() { code=$1; shift; say "$*"; exit "$code"; }

# lab_dir [DIR] sets LAB, the lab's folder.
lab_dir() {
	LAB=${1:-${COX_CACHE:-${HOME:?}/.cache/coxswain}/slurm}
	mkdir -p "$LAB"
	LAB=$(cd "$LAB" && pwd -P)
	# A Unix socket's name has at most 107 bytes, and munge puts ".lock" behind it.
	[ ${#LAB} -le 90 ] || die 2 "$LAB is too long for a socket's name: give a folder with at most 90 characters"
	[[ $LAB != *[[:space:]]* ]] || die 2 "$LAB has a blank in it, which slurm.conf cannot say"
	export SLURM_CONF=$LAB/slurm.conf
}

# running PIDFILE WORD prints the pid if it is that of a live process whose command
# line names WORD and this lab; a number that the system gave to somebody else
# meanwhile is not ours.
running() {
	local pid command
	pid=$(cat "$1" 2>/dev/null) && [ -n "$pid" ] || return 1
	command=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") || return 1
	[[ $command == *"$2"* && $command == *"$LAB/"* ]] && echo "$pid"
}

# stop PIDFILE WORD ends that process: SIGTERM, and SIGKILL after five seconds.
stop() {
	local pid n
	pid=$(running "$1" "$2") || { rm -f "$1"; return 0; }
	kill "$pid" 2>/dev/null
	for ((n = 0; n < 100; n++)); do
		running "$1" "$2" >/dev/null || break
		[ "$n" = 90 ] && kill -9 "$pid" 2>/dev/null
		sleep 0.05
	done
	rm -f "$1"
}

# install_packages MORE... -- COMMAND:PACKAGE... installs the packages whose commands are
# missing, and with them MORE, without starting their services. Exit 3: it cannot.
install_packages() {
	local more=() missing=() p
	while [ "$1" != -- ]; do more+=("$1") && shift; done
	shift
	for p in "$@"; do
		command -v "${p%%:*}" >/dev/null || missing+=("${p##*:}")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null || die 3 "needs ${missing[*]}, and there is no apt-get here to install them"
	[ "$(id -u)" = 0 ] || die 3 "needs ${missing[*]}, and only root can install them"
	say "installing ${missing[*]}"
	with_services_forbidden apt_install "${more[@]}" "${missing[@]}" ||
		die 3 "apt-get could not install ${missing[*]}: see $LAB/apt.log"
}

# with_services_forbidden runs a command while policy-rc.d, which packages ask before
# they start a service, says no (101).
with_services_forbidden() (
	policy=/usr/sbin/policy-rc.d
	[ ! -e $policy ] || mv $policy $policy.before-cox
	trap 'rm -f $policy; [ ! -e $policy.before-cox ] || mv $policy.before-cox $policy' EXIT
	printf '#!/bin/sh\nexit 101\n' >$policy
	chmod 755 $policy
	"$@"
)

apt_install() {
	local get=(apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5)
	export DEBIAN_FRONTEND=noninteractive
	"${get[@]}" install --no-install-recommends -y "$@" >"$LAB/apt.log" 2>&1 </dev/null ||
		{ "${get[@]}" update && "${get[@]}" install --no-install-recommends -y "$@"; } >>"$LAB/apt.log" 2>&1 </dev/null
}
