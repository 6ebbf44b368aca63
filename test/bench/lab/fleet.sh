#!/usr/bin/env bash
# Starts a slurmctld with nodes that are not there, in one folder, as root: munged,
# slurmctld, slurmrestd; no database, no slurmd. Nodes are in the cloud and "resumed"
# by true: jobs are allocated and stay CONFIGURING. up.sh has installed the packages.
#
#   test/bench/lab/fleet.sh LAB NODES
#
# down.sh LAB ends everything. TUNING=defaults leaves the scheduler's parameters alone.
set -euo pipefail
LAB=${1:?usage: fleet.sh LAB NODES} N=${2:?usage: fleet.sh LAB NODES}
mkdir -p "$LAB"/{run,log,state,spool,rest}
LAB=$(cd "$LAB" && pwd -P)
chmod 755 "$LAB" "$LAB"/{run,log}
chown slurm "$LAB"/{state,log,run}
# Below the ports that the kernel gives to outgoing connections, apart from up.sh's.
base=$((30000 + (RANDOM % 170) * 16))
tuning=batch_sched_delay=0,sched_min_interval=20000,sched_interval=1,bf_interval=1,default_queue_depth=1000
[ "${TUNING:-t3}" != defaults ] || tuning=bf_interval=30
leaves=$(((N + 31) / 32))
for ((i = 1; i <= leaves; i++)); do
	to=$((i * 32))
	echo "SwitchName=leaf$i Nodes=n[$((to - 31))-$((to < N ? to : N))]"
done >"$LAB/topology.conf"
echo "SwitchName=spine Switches=leaf[1-$leaves]" >>"$LAB/topology.conf"
echo "Name=gpu Type=h100 Count=8" >"$LAB/gres.conf"
cat >"$LAB/slurm.conf" <<X
ClusterName=fleet
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$base
SlurmdPort=$((base + 1))
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$LAB/munge.sock
CredType=cred/munge
StateSaveLocation=$LAB/state
SlurmdSpoolDir=$LAB/spool/%n
SlurmctldPidFile=$LAB/run/slurmctld.pid
SlurmctldLogFile=$LAB/log/slurmctld.log
SlurmctldDebug=error
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
TopologyPlugin=topology/tree
SchedulerType=sched/backfill
SchedulerParameters=$tuning
PriorityType=priority/multifactor
AccountingStorageType=accounting_storage/none
MaxJobCount=200000
MinJobAge=20
SlurmdTimeout=0
MessageTimeout=300
DefMemPerCPU=100
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=3600
SuspendTimeout=5
ResumeTimeout=36000
ResumeRate=0
SuspendRate=0
PrivateData=cloud
SlurmctldParameters=cloud_dns,idle_on_node_suspend
NodeName=n[1-$N] NodeHostname=localhost NodeAddr=127.0.0.1 CPUs=64 Sockets=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=512000 Gres=gpu:h100:8 State=CLOUD
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
X
export SLURM_CONF=$LAB/slurm.conf
(umask 077 && head -c 128 /dev/urandom >"$LAB/munge.key")
munged --force --num-threads=4 --key-file="$LAB/munge.key" --socket="$LAB/munge.sock" --pid-file="$LAB/run/munged.own" \
	--log-file="$LAB/log/munged.log" --seed-file="$LAB/munge.seed" >"$LAB/log/munged.out" 2>&1
start() {
	local name=$1
	shift
	setsid "$@" >"$LAB/log/$name.out" 2>&1 </dev/null &
	echo $! >"$LAB/run/$name.own"
}
await() {
	local what=$1 n
	shift
	for ((n = 0; n < 1200; n++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	echo "fleet: $what did not start: $(tail -qn 3 "$LAB"/log/* | tail -n 12)" >&2
	exit 1
}
start slurmctld setpriv --reuid=slurm --regid=slurm --clear-groups env SLURM_CONF="$SLURM_CONF" slurmctld -D -f "$SLURM_CONF"
await slurmctld sh -c 'scontrol ping | grep -q "is UP"'
chown nobody "$LAB/rest"
start slurmrestd setpriv --reuid=nobody --regid=nogroup --clear-groups env SLURM_CONF="$SLURM_CONF" \
	slurmrestd -f "$SLURM_CONF" -a rest_auth/local -s openapi/v0.0.38 -t 16 "unix:$LAB/rest/sock"
await slurmrestd test -S "$LAB/rest/sock"
