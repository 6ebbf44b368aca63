#!/usr/bin/env bash
# Starts a newer Slurm than this machine's packages have, as root, from a root directory
# that another Debian was unpacked into (debootstrap): slurmctld, eight slurmd, slurmrestd.
# No database. Its mounts are in a namespace of their own, and end with it.
#
#   test/bench/lab/modern.sh LAB ROOT     LAB: a new folder with a short name, not in ROOT
#
# Prints the words that a command has to stand behind, to run there. modern-down.sh LAB
# ends everything. A file in LAB has the same name inside.
set -euo pipefail
LAB=${1:?usage: modern.sh LAB ROOT} ROOT=${2:?usage: modern.sh LAB ROOT}
[ "$(id -u)" = 0 ] || { echo "modern lab: needs root" >&2; exit 3; }
[ -x "$ROOT/usr/sbin/slurmctld" ] || { echo "modern lab: $ROOT has no slurmctld" >&2; exit 3; }
mkdir -p "$LAB"/{run,log,state,spool,tmp}
LAB=$(cd "$LAB" && pwd -P)
ROOT=$(cd "$ROOT" && pwd -P)
chmod 755 "$LAB" "$LAB"/{run,log,tmp}
uid=$(awk -F: '$1 == "slurm" {print $3}' "$ROOT/etc/passwd")
chown "$uid" "$LAB"/{state,log,run}
for ((n = 0; n < 50; n++)); do
	base=$((30000 + (RANDOM % 150) * 16)) free=yes
	for ((p = base; p < base + 12; p++)); do
		(exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null && free=no
	done
	[ $free = no ] || break
done
cat >"$LAB/slurm.conf" <<X
ClusterName=modern
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$base
SlurmdPort=$((base + 1))
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/slurm
CredType=auth/slurm
AuthInfo=use_client_ids
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=$LAB/jwt.key
StateSaveLocation=$LAB/state
SlurmdSpoolDir=$LAB/spool/%n
SlurmctldPidFile=$LAB/run/slurmctld.pid
SlurmdPidFile=$LAB/run/slurmd.%n.pid
SlurmctldLogFile=$LAB/log/slurmctld.log
SlurmdLogFile=$LAB/log/slurmd.%n.log
SlurmctldDebug=error
SlurmdDebug=error
ProctrackType=proctrack/${PROCTRACK:-linuxproc}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_min_interval=20000,sched_interval=1,bf_interval=1
MailProg=/bin/true
MinJobAge=300
DefMemPerCPU=100
NodeName=m[1-8] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$((base + 2))-$((base + 9))] CPUs=64 Sockets=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=512000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
X
if [ "${PROCTRACK:-}" = cgroup ]; then echo CgroupPlugin=cgroup/v1; else echo CgroupPlugin=disabled; fi >"$LAB/cgroup.conf"
(umask 077 && head -c 128 /dev/urandom >"$LAB/slurm.key" && head -c 32 /dev/urandom >"$LAB/jwt.key")
chown "$uid" "$LAB/slurm.key" "$LAB/jwt.key"

# The holder of the namespace, whose end takes the mounts away.
setsid unshare -m bash -c '
	set -e
	mount --make-rprivate /
	mkdir -p "$2$1" "$2/run/slurmctld" "$2/run/slurm"
	mount --rbind /proc "$2/proc"; mount --rbind /dev "$2/dev"; mount --rbind /sys "$2/sys"
	mount -t tmpfs none "$2/tmp"; mount -t tmpfs none "$2/run"; mkdir -p "$2$1" "$2/run/slurmctld"; chown "$3" "$2/run/slurmctld"
	mount --bind "$1" "$2$1"
	printf "127.0.0.1 localhost %s\n" "$(hostname)" >"$2/etc/hosts"
	touch "$1/run/mounted"
	exec sleep infinity' holder "$LAB" "$ROOT" "$uid" >"$LAB/log/holder.out" 2>&1 </dev/null &
holder=$!
echo $holder >"$LAB/run/holder.own"
for ((n = 0; n < 200; n++)); do [ -e "$LAB/run/mounted" ] && break; sleep 0.05; done
[ -e "$LAB/run/mounted" ] || { cat "$LAB/log/holder.out" >&2; exit 1; }
inside=("$(command -v nsenter)" "--mount=/proc/$holder/ns/mnt" "$(command -v chroot)" "$ROOT") # whatever PATH is
start() {
	local name=$1
	shift
	setsid "$@" >"$LAB/log/$name.out" 2>&1 </dev/null &
	echo $! >"$LAB/run/$name.own"
}
await() {
	local what=$1 n
	shift
	for ((n = 0; n < 600; n++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	echo "modern lab: $what did not start: $(tail -qn 3 "$LAB"/log/* | tail -n 12)" >&2
	exit 1
}
as=(nsenter "--mount=/proc/$holder/ns/mnt" chroot "--userspec=$uid:$uid" "$ROOT" env "SLURM_CONF=$LAB/slurm.conf")
start slurmctld "${as[@]}" /usr/sbin/slurmctld -D -f "$LAB/slurm.conf"
ask=("${inside[@]}" env "SLURM_CONF=$LAB/slurm.conf")
await slurmctld sh -c "${ask[*]} scontrol ping | grep -q 'is UP'"
for n in 1 2 3 4 5 6 7 8; do
	mkdir -p "$LAB/spool/m$n"
	start "slurmd.m$n" "${inside[@]}" /usr/sbin/slurmd -D -N "m$n" -f "$LAB/slurm.conf"
done
await "eight slurmd" sh -c "[ \"\$(${ask[*]} sinfo -h -N -t idle -o %N | wc -l)\" = 8 ]"
start slurmrestd nsenter "--mount=/proc/$holder/ns/mnt" chroot --userspec=65534:65534 "$ROOT" env "SLURM_CONF=$LAB/slurm.conf" SLURM_JWT=daemon \
	/usr/sbin/slurmrestd -a rest_auth/jwt -s openapi/slurmctld "127.0.0.1:$((base + 10))"
echo "http://127.0.0.1:$((base + 10))" >"$LAB/rest"
"${ask[@]}" sbatch --version >&2
echo "${inside[*]}" | tee "$LAB/inside"
