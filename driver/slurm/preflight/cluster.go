package preflight

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/inventory"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// poolOption is the value of an option of the pool's jobs; empty: there is none.
func (c *Config) poolOption(name string) string {
	for _, o := range slices.Backward(c.Options) {
		if value, ok := strings.CutPrefix(o, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// checkClusterParts are partitions, and the reservation.
func (l *look) checkClusterParts(ctx context.Context) {
	inv, err := l.Site.Stock(ctx)
	if err != nil {
		l.addFailure("partitions", err)
		return
	}
	var names []string
	standard := ""
	for _, p := range inv.Partitions {
		names = append(names, p.Name)
		if p.Default {
			standard = p.Name
		}
	}
	said := strings.Join(names, ", ")
	switch want := l.poolOption("partition"); {
	case len(names) == 0:
		l.addFinding("partitions", engine.Missing, "PartitionName=… in slurm.conf, and scontrol reconfigure", "there is none that this user sees")
	case want != "":
		for name := range strings.SplitSeq(want, ",") {
			l.checkPartition(inv, name, said)
		}
	case standard == "" && l.way.Settings == nil: // slurmrestd does not tell it
		l.addFinding("partitions", engine.Found, "", "%s; which is the default is not told", said)
	case standard == "":
		l.addFinding("partitions", engine.Missing, "--partition "+names[0], "%s, and none is the default: a job that names none is refused", said)
	default:
		l.addFinding("partitions", engine.Found, "", "%s; jobs that name none go to %s", said, standard)
		if i := slices.IndexFunc(inv.Partitions, func(p fleet.Partition) bool { return p.Name == standard }); inv.Partitions[i].State != "UP" {
			l.checkPartition(inv, standard, said)
		}
	}
	if want := l.poolOption("reservation"); want != "" {
		l.checkReservation(inv, want)
	}
}

// checkPartition is one that the pool's jobs go to.
func (l *look) checkPartition(inv *fleet.Inventory, name, all string) {
	i := slices.IndexFunc(inv.Partitions, func(p fleet.Partition) bool { return p.Name == name })
	switch {
	case i < 0:
		l.addFinding("partitions", engine.Missing, "name one of "+all, "there is no %s", name)
	case inv.Partitions[i].State != "UP":
		l.addFinding("partitions", engine.Warning, "scontrol update partitionname="+name+" state=up", "%s is %s: jobs wait", name, inv.Partitions[i].State)
	default:
		l.addFinding("partitions", engine.Found, "", "%s, with %s", name, inv.Partitions[i].Nodes)
	}
}

func (l *look) checkReservation(inv *fleet.Inventory, name string) {
	i := slices.IndexFunc(inv.Reservations, func(r fleet.Reservation) bool { return r.Name == name })
	switch {
	case i < 0:
		l.addFinding("reservation", engine.Missing, "scontrol create reservation reservationname="+name+" starttime=now duration=… nodes=… users=…", "there is no %s", name)
	case !inv.Reservations[i].End.IsZero() && inv.Reservations[i].End.Before(time.Now()):
		l.addFinding("reservation", engine.Missing, "scontrol update reservationname="+name+" endtime=…", "%s has ended", name)
	default:
		l.addFinding("reservation", engine.Found, "", "%s, with %s until %s", name, inv.Reservations[i].Nodes, inv.Reservations[i].End.Format(time.DateTime))
	}
}

// checkDevices are what GRES there are, and nodes that take no work.
func (l *look) checkDevices(ctx context.Context) {
	nodes, err := l.Site.Nodes(ctx)
	if err != nil {
		l.addFailure("gres", err)
		return
	}
	counts, on := map[string]int{}, 0
	off := map[string][]string{}
	for i := range nodes {
		n := &nodes[i]
		of := inventory.GPUs(n.GRES)
		for _, d := range of {
			counts[strings.TrimSuffix(d.Kind+":"+d.Type, ":")]++
		}
		if len(of) > 0 {
			on++
		}
		if n.Down || n.Drained {
			why := strings.TrimSpace(n.State + " " + n.Reason)
			off[why] = append(off[why], n.Name)
		}
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%d × %s", counts[name], name))
	}
	if len(words) == 0 {
		l.addFinding("gres", engine.Warning, "GresTypes=gpu and NodeName=… Gres=gpu:TYPE:N in slurm.conf, NodeName=… File=/dev/… in gres.conf", "no node has GPUs: jobs that ask for them never start here")
	} else {
		l.addFinding("gres", engine.Found, "", "%s on %d of %d nodes", strings.Join(words, ", "), on, len(nodes))
	}
	for _, why := range slices.Sorted(maps.Keys(off)) {
		l.addFinding("nodes", engine.Warning, "when it is mended: scontrol update nodename="+hostlist.Compress(off[why])+" state=resume", "%s: %s", hostlist.Compress(off[why]), why)
	}
}

// checkTopology say where nodes lie.
func (l *look) checkTopology(ctx context.Context) {
	nodes, err := l.Site.Nodes(ctx)
	if err != nil {
		return // devices has said it
	}
	leaves, without := map[string]bool{}, 0
	for i := range nodes {
		if p := nodes[i].Path; len(p) > 0 {
			leaves[strings.Join(p, "/")] = true
		} else {
			without++
		}
	}
	switch {
	case len(leaves) == 0 && l.way.Lacks != "":
	case len(leaves) == 0:
		l.addFinding("topology", engine.Warning, "TopologyPlugin=topology/tree (or topology/block) in slurm.conf, and topology.conf", "where nodes lie is not known: gangs are placed as if all were near each other")
	case without > 0:
		l.addFinding("topology", engine.Warning, "name them in topology.conf", "%s, and %s in none", countNoun(len(leaves), "leaf", "leaves"), countNoun(without, "node", "nodes"))
	default:
		l.addFinding("topology", engine.Found, "", "%s", countNoun(len(leaves), "leaf", "leaves"))
	}
}

func countNoun(n int, one, more string) string {
	if n == 1 {
		more = one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func (l *look) checkAccounting(context.Context) {
	switch {
	case !l.is.Accounts:
		l.addFinding("accounting", engine.Warning, "AccountingStorageType=accounting_storage/slurmdbd in slurm.conf, and slurmdbd", "there is none: of a job that is forgotten before it was looked at, the exit code is lost")
	case l.way.Settings != nil && !l.is.Comments:
		l.addFinding("accounting", engine.Warning, "AccountingStoreFlags=job_comment in slurm.conf, and scontrol reconfigure", "it does not keep comments, in which our tags are: a job that slurmctld has forgotten is not found there by its tag")
	default:
		l.addFinding("accounting", engine.Found, "", "slurmdbd answers for jobs that slurmctld has forgotten")
	}
}

// checkProcessTracking are how Slurm follows them, and holds them to their limits.
func (l *look) checkProcessTracking(context.Context) {
	s := l.way.Settings
	if s == nil {
		return // Lacks says so
	}
	if l.is.Tracks {
		l.addFinding("processes", engine.Found, "", "%s: none of a job's is lost", s["ProctrackType"])
	} else {
		l.addFinding("processes", engine.Warning, "ProctrackType=proctrack/cgroup in slurm.conf, and all daemons begun anew", "%s follows descendants: a process that leaves its parents can outlive its job unseen", s["ProctrackType"])
	}
	if l.is.Limits {
		l.addFinding("limits", engine.Found, "", "%s", s["TaskPlugin"])
	} else {
		l.addFinding("limits", engine.Warning, "TaskPlugin=task/cgroup,task/affinity in slurm.conf and ConstrainRAMSpace=yes, ConstrainDevices=yes in cgroup.conf", "TaskPlugin=%s keeps no job within its memory, CPUs and devices", strings.ReplaceAll(s["TaskPlugin"], "(null)", "task/none"))
	}
}

// shortest is a MinJobAge that leaves time to look at what has ended.
const shortest = time.Minute

func (l *look) checkJobAge(context.Context) {
	if l.way.Settings == nil {
		return
	}
	if l.is.MinAge > 0 && l.is.MinAge < shortest {
		l.addFinding("MinJobAge", engine.Warning, "MinJobAge=300 in slurm.conf, and scontrol reconfigure", "slurmctld forgets jobs %s after their end: while this server is away their ends are left to accounting", l.is.MinAge)
		return
	}
	l.addFinding("MinJobAge", engine.Found, "", "slurmctld knows jobs for %s after their end", l.is.MinAge)
}
