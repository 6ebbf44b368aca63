#!/usr/bin/env bash
# Starts a whole real Slurm to measure against, in one folder, as root: munged,
# MariaDB, slurmdbd, slurmctld, eight slurmd on this machine, slurmrestd. Debian's
# packages are installed where they are missing, without starting their services.
#
#   test/bench/lab/up.sh LAB        LAB: a new folder with a short name
#
# Prints LAB. Exit 3: it cannot be had here. down.sh LAB ends everything.
# TUNING=defaults leaves the scheduler's parameters as Slurm comes. PROCTRACK=cgroup has
# jobs' processes followed by control groups (version 1), instead of as descendants.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
LAB=${1:?usage: up.sh LAB}
mkdir -p "$LAB"
LAB=$(cd "$LAB" && pwd -P)
PATH=$PATH:/usr/sbin:/sbin
say() { echo "bench lab: $*" >&2; }
die() { code=$1; shift; say "$*"; exit "$code"; }
trap 'say "line $LINENO failed: $BASH_COMMAND"' ERR
[ "$(id -u)" = 0 ] || die 3 "needs root: slurmd runs jobs as their owners"
[ ${#LAB} -le 80 ] || die 2 "$LAB is too long for a socket's name"

install_packages() {
	local missing=() p
	for p in sbatch:slurm-client slurmctld:slurmctld slurmd:slurmd slurmdbd:slurmdbd slurmrestd:slurmrestd \
		munged:munge mariadbd:mariadb-server; do
		command -v "${p%%:*}" >/dev/null || missing+=("${p##*:}")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null || die 3 "needs ${missing[*]}, and there is no apt-get here"
	say "installing ${missing[*]}"
	local policy=/usr/sbin/policy-rc.d get=(apt-get -qq -o DPkg::Lock::Timeout=120)
	[ ! -e $policy ] || mv $policy $policy.before-cox
	printf '#!/bin/sh\nexit 101\n' >$policy
	chmod 755 $policy
	missing+=(slurm-wlm-basic-plugins slurm-wlm-mysql-plugin slurm-wlm-jwt-plugin)
	DEBIAN_FRONTEND=noninteractive "${get[@]}" install --no-install-recommends -y "${missing[@]}" >"$LAB/apt.log" 2>&1 </dev/null ||
		{ "${get[@]}" update && DEBIAN_FRONTEND=noninteractive "${get[@]}" install --no-install-recommends -y "${missing[@]}"; } >>"$LAB/apt.log" 2>&1 </dev/null ||
		{ rm -f $policy; die 3 "apt-get could not install ${missing[*]}: see $LAB/apt.log"; }
	rm -f $policy
	[ ! -e $policy.before-cox ] || mv $policy.before-cox $policy
}

# ports sets CTLD, SLURMD, DBD, SQL, FIRST and LAST: twelve in a row that nobody has.
ports() {
	local base p n
	for ((n = 0; n < 50; n++)); do
		base=$((20000 + (RANDOM % 600) * 16))
		for ((p = base; p < base + 12; p++)); do
			(exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null && continue 2
		done
		CTLD=$base SLURMD=$((base + 1)) DBD=$((base + 2)) SQL=$((base + 3)) FIRST=$((base + 4)) LAST=$((base + 11))
		return
	done
	die 1 "no twelve free ports in a row"
}

# start NAME COMMAND... runs a daemon in the background, its pid in run/NAME.own.
start() {
	local name=$1
	shift
	setsid "$@" >"$LAB/log/$name.out" 2>&1 </dev/null &
	echo $! >"$LAB/run/$name.own"
}

# await SECONDS WHAT COMMAND... polls until the command succeeds.
await() {
	local limit=$1 what=$2 n
	shift 2
	for ((n = 0; n < limit * 20; n++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	die 1 "$what did not start: $(tail -qn 3 "$LAB"/log/* 2>/dev/null | tail -n 12)"
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

fill() {
	sed -e "s|@LAB@|$LAB|g; s|@CTLD@|$CTLD|g; s|@SLURMD@|$SLURMD|g; s|@DBD@|$DBD|g; s|@SQL@|$SQL|g" \
		-e "s|@FIRST@|$FIRST|g; s|@LAST@|$LAST|g; s|@TUNING@|$tuning|g; s|@ACCOUNTING@|$accounting|g; s|proctrack/linuxproc|proctrack/${PROCTRACK:-linuxproc}|" "$1" >"$2"
}

install_packages
ports
tuning=batch_sched_delay=0,sched_min_interval=20000,sched_interval=1,bf_interval=1,default_queue_depth=1000
[ "${TUNING:-t3}" != defaults ] || tuning=bf_interval=30
accounting="AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\nAccountingStoragePort=$DBD\nAccountingStoragePass=$LAB/munge.sock"
mkdir -p "$LAB"/{run,log,state,spool,sql,rest}
chmod 755 "$LAB" "$LAB"/{run,log}
chown slurm "$LAB"/{state,log,run}
chown mysql "$LAB/sql"
fill "$here/slurm.conf.in" "$LAB/slurm.conf"
fill "$here/slurmdbd.conf.in" "$LAB/slurmdbd.conf"
[ "${PROCTRACK:-}" != cgroup ] || printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=yes\n' >"$LAB/cgroup.conf"
chown slurm "$LAB/slurmdbd.conf"
chmod 600 "$LAB/slurmdbd.conf"
export SLURM_CONF=$LAB/slurm.conf

(umask 077 && head -c 128 /dev/urandom >"$LAB/munge.key" && head -c 32 /dev/urandom >"$LAB/jwt.key")
chown slurm "$LAB/jwt.key"
munged --force --num-threads=4 --key-file="$LAB/munge.key" --socket="$LAB/munge.sock" --pid-file="$LAB/run/munged.own" \
	--log-file="$LAB/log/munged.log" --seed-file="$LAB/munge.seed" >"$LAB/log/munged.out" 2>&1

sql=(--no-defaults -uroot -h127.0.0.1 "-P$SQL")
mariadb-install-db --no-defaults --user=mysql --datadir="$LAB/sql" --skip-test-db --auth-root-authentication-method=normal >"$LAB/log/sql-install.out" 2>&1
start mariadbd mariadbd --no-defaults --user=mysql --datadir="$LAB/sql" --socket="$LAB/sql/my.sock" --pid-file="$LAB/sql/my.pid" \
	--port="$SQL" --bind-address=127.0.0.1 --innodb-buffer-pool-size=512M --innodb-lock-wait-timeout=900 --innodb-flush-log-at-trx-commit=2
await 30 mariadbd mariadb-admin "${sql[@]}" ping
mariadb "${sql[@]}" -e "create user slurm@'127.0.0.1' identified by 'bench'; create user slurm@localhost identified by 'bench';
	grant all on slurm_acct_db.* to slurm@'127.0.0.1'; grant all on slurm_acct_db.* to slurm@localhost;"

as_slurm=(setpriv --reuid=slurm --regid=slurm --clear-groups)
# slurmdbd reads its configuration beside slurm.conf.
start slurmdbd "${as_slurm[@]}" env SLURM_CONF="$SLURM_CONF" slurmdbd -D
await 30 slurmdbd listens "$DBD"
sacctmgr -i -Q add cluster bench >/dev/null 2>&1 || true
start slurmctld "${as_slurm[@]}" env SLURM_CONF="$SLURM_CONF" slurmctld -D -f "$SLURM_CONF"
await 30 slurmctld sh -c 'scontrol ping | grep -q "is UP"'
for n in 1 2 3 4 5 6 7 8; do
	mkdir -p "$LAB/spool/n$n"
	start "slurmd.n$n" slurmd -D -N "n$n" -f "$SLURM_CONF"
done
await 30 "eight slurmd" sh -c '[ "$(sinfo -h -N -t idle -o %N | wc -l)" = 8 ]'
# slurmrestd refuses root and SlurmUser.
chown nobody "$LAB/rest"
start slurmrestd setpriv --reuid=nobody --regid=nogroup --clear-groups env SLURM_CONF="$SLURM_CONF" \
	slurmrestd -f "$SLURM_CONF" -a rest_auth/local -s openapi/v0.0.38 -t 16 "unix:$LAB/rest/sock"
await 10 slurmrestd test -S "$LAB/rest/sock"
say "$(sbatch --version), eight slurmd, slurmdbd, slurmrestd"
echo "$LAB"
