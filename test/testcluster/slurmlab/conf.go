package lab

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// gpus is how many fake GPUs a node has.
const gpus = 8

// writeFolder makes the folder: configuration, keys, devices, and folders that their daemons own.
func (l *Lab) writeFolder(root string, c Config) error {
	slurm, err := userOf(root, "slurm")
	if err != nil {
		return err
	}
	mysql, err := userOf("", "mysql")
	if err != nil {
		return err
	}
	l.slurm, l.mysql = slurm, mysql
	nobody := id{65534, 65534}
	for name, who := range map[string]id{"": {}, "run": slurm, "log": slurm, "state": slurm, "spool": {}, "sql": mysql, "rest": nobody, "dev": {}, "ssh": {}} {
		dir := filepath.Join(l.Dir, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask, and MkdirTemp, say
			return err
		}
		if err := os.Chown(dir, who.uid, who.gid); err != nil {
			return err
		}
	}
	for _, n := range l.Nodes {
		if err := os.MkdirAll(filepath.Join(l.Dir, "spool", n), 0o755); err != nil {
			return err
		}
		for _, tmp := range []string{filepath.Join(l.Dir, "tmp", n), l.Disk(n), l.Disk("own")} { // PMIx's files have the same names on all nodes
			if err := os.MkdirAll(tmp, 0o755); err != nil {
				return err
			}
			if err := os.Chmod(tmp, 0o777|os.ModeSticky); err != nil {
				return err
			}
		}
	}
	for i := range gpus {
		if err := unix.Mknod(filepath.Join(l.Dir, "dev", fmt.Sprintf("gpu%d", i)), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
			return err
		}
	}
	for name, size := range map[string]int{"munge.key": 128, "slurm.key": 128, "jwt.key": 32} {
		key := make([]byte, size)
		_, _ = rand.Read(key)
		who := slurm
		if name == "munge.key" {
			who = id{}
		}
		if err := l.putFile(name, string(key), 0o600, who); err != nil {
			return err
		}
	}
	hosts, err := os.ReadFile("/etc/hosts")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"hosts":         string(hosts) + "\n127.0.0.1 " + strings.Join(l.Nodes, " ") + "\n",
		"slurm.conf":    l.slurmConf(c),
		"gres.conf":     fmt.Sprintf("NodeName=%s Name=gpu Type=h100 File=%s/dev/gpu[0-%d]\n", strings.Join(l.Nodes, ","), l.Dir, gpus-1),
		"topology.conf": l.topologyConf(c),
		"cgroup.conf":   "CgroupPlugin=disabled\n",
	} {
		if name == "cgroup.conf" && hasCgroupV1() {
			text = "CgroupPlugin=cgroup/v1\n"
		}
		if err := l.putFile(name, text, 0o644, id{}); err != nil {
			return err
		}
	}
	return l.putFile("slurmdbd.conf", l.dbdConf(), 0o600, slurm)
}

func (l *Lab) putFile(name, text string, mode os.FileMode, who id) error {
	name = filepath.Join(l.Dir, name)
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		return err
	}
	return os.Chown(name, who.uid, who.gid)
}

// authConf are the lines of how daemons and commands know each other.
func (l *Lab) authConf() string {
	if l.modern {
		return "AuthType=auth/slurm\nAuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=" + l.Dir + "/jwt.key\n"
	}
	return "AuthType=auth/munge\nAuthInfo=socket=" + l.Dir + "/munge.sock\nAuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=" + l.Dir + "/jwt.key\n"
}

// hasCgroupV1 reports whether this machine has control groups of version 1, by which Slurm can
// follow processes where no systemd gives it a part of version 2.
func hasCgroupV1() bool {
	_, err := os.Stat("/sys/fs/cgroup/freezer")
	return err == nil
}

// slurmConf decides at once, at the best tuning found (docs/explanation/benchmarks.md). Processes are
// followed by control groups where this machine has version 1 of them, else as descendants.
func (l *Lab) slurmConf(c Config) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("ClusterName=lab\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=%d\nSlurmdPort=%d", l.ports.portOf(ctldPort), l.ports.portOf(lastPort))
	b.WriteString(l.authConf())
	if l.modern {
		line("AuthInfo=use_client_ids\nCredType=auth/slurm")
	} else {
		line("CredType=cred/munge\nAccountingStoragePass=%s/munge.sock", l.Dir)
	}
	track := "linuxproc"
	if hasCgroupV1() {
		track = "cgroup"
	}
	line(`SlurmUser=slurm
SlurmdUser=root
StateSaveLocation=%[1]s/state
SlurmdSpoolDir=%[1]s/spool/%%n
TmpFS=%[1]s/tmp/%%n
SlurmctldPidFile=%[1]s/run/slurmctld.pid
SlurmdPidFile=%[1]s/run/slurmd.%%n.pid
SlurmctldLogFile=%[1]s/log/slurmctld.log
SlurmdLogFile=%[1]s/log/slurmd.%%n.log
SlurmctldDebug=info
SlurmdDebug=info
ProctrackType=proctrack/%[2]s
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=20000,sched_interval=1,bf_interval=1,default_queue_depth=1000
PriorityType=priority/multifactor
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=%[3]d
MinJobAge=300
SlurmctldTimeout=10
SlurmdTimeout=60
MessageTimeout=60
DefMemPerCPU=100`, l.Dir, track, l.ports.portOf(dbdPort))
	switch {
	case c.Blocks:
		line("TopologyPlugin=topology/block")
	default:
		line("TopologyPlugin=topology/tree")
	}
	for i, n := range l.Nodes {
		line("NodeName=%s NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d CPUs=64 Sockets=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=512000 Gres=gpu:h100:%d Feature=lab State=UNKNOWN", n, l.ports.portOf(slurmdPort+i), gpus)
	}
	line("PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
	if c.More != "" {
		line("%s", c.More)
	}
	return b.String()
}

// topologyConf is two leaves and a spine, or blocks of two.
func (l *Lab) topologyConf(c Config) string {
	half := (len(l.Nodes) + 1) / 2
	if !c.Blocks {
		return fmt.Sprintf("SwitchName=leaf1 Nodes=%s\nSwitchName=leaf2 Nodes=%s\nSwitchName=spine Switches=leaf[1-2]\n", strings.Join(l.Nodes[:half], ","), strings.Join(l.Nodes[half:], ","))
	}
	var b strings.Builder
	for i := 0; i+1 < len(l.Nodes); i += 2 {
		fmt.Fprintf(&b, "BlockName=b%d Nodes=%s\n", i/2+1, strings.Join(l.Nodes[i:i+2], ","))
	}
	return b.String() + "BlockSizes=2\n"
}

func (l *Lab) dbdConf() string {
	return fmt.Sprintf(`DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=%d
SlurmUser=slurm
%sDebugLevel=error
LogFile=%s/log/slurmdbd.log
PidFile=%[3]s/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=%[4]d
StorageUser=slurm
StoragePass=lab
StorageLoc=slurm_acct_db
`, l.ports.portOf(dbdPort), l.authConf(), l.Dir, l.ports.portOf(sqlPort))
}

// id is a user and a group.
type id struct{ uid, gid int }

// userOf finds a user of a root directory's.
func userOf(root, name string) (id, error) {
	f, err := os.Open(filepath.Join(root, "/etc/passwd"))
	if err != nil {
		return id{}, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if p := strings.Split(s.Text(), ":"); len(p) > 3 && p[0] == name {
			uid, err := strconv.Atoi(p[2])
			if err != nil {
				return id{}, err
			}
			gid, err := strconv.Atoi(p[3])
			return id{uid, gid}, err
		}
	}
	return id{}, fmt.Errorf("there is no user %s in %s/etc/passwd", name, root)
}
