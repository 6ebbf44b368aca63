package slurm

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/policy"
)

// TestServerConfiguration: a cluster's slurm.conf becomes the configuration of a server with the names,
// nodes and partitions of the cluster, and a report of what is different here, both as they were looked
// through. priority/basic leaves the priority weights of the file without effect, as in Slurm.
//
// Seen to fail with: weights kept beside priority/basic.
func TestServerConfiguration(t *testing.T) {
	dir := filepath.Join("testdata", "lab")
	r := read(t, dir, "slurm.conf")
	text, err := r.Server.Write("slurm.conf")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join(dir, "cox.yaml"), string(text))
	golden(t, filepath.Join(dir, "queues.yaml"), string(policy.Write(r.Policy)))
	var b strings.Builder
	r.Report.Write(&b, true)
	golden(t, filepath.Join(dir, "report.txt"), b.String())
	if notes := r.Server.Notes(); len(notes) > 0 {
		t.Error(notes)
	}
}

// TestUnequalNodes: virtual nodes have one size, which most nodes have; the others are named, as is a
// partition without nodes.
func TestUnequalNodes(t *testing.T) {
	r := read(t, filepath.Join("testdata", "gpu"), "slurm.conf")
	text, err := r.Server.Write("slurm.conf")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "gpu", "cox.yaml"), string(text))
	want := []string{
		"bad (112 CPUs): written as 112 CPUs, 8 h100, features ib,h100, because all virtual nodes of a server have one size",
		"gpu[05-06] (112 CPUs, 8 a100, features ib): written as 112 CPUs, 8 h100, features ib,h100, because all virtual nodes of a server have one size",
		"old1 (16 CPUs, 4 GPUs): written as 112 CPUs, 8 h100, features ib,h100, because all virtual nodes of a server have one size",
	}
	if !slices.Equal(r.Server.Notes(), want) {
		t.Errorf("%q", r.Server.Notes())
	}
	r, err = Read([]File{{"slurm.conf", "NodeName=n1\nPartitionName=a Nodes=n1\nPartitionName=b\n"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err = r.Server.Write("slurm.conf")
	if err != nil || strings.Contains(string(text), `name: "b"`) || len(r.Server.Notes()) != 1 {
		t.Errorf("%s\n%q %v", text, r.Server.Notes(), err)
	}
	r, err = Read([]File{{"slurm.conf", "ClusterName=big\nNodeName=n[1-1001]\n"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = r.Server.Write("slurm.conf"); fault.KindOf(err) != fault.Unsupported || !strings.Contains(fault.Remedy(err), "cox pool add big --engine slurm") {
		t.Error(err, fault.Remedy(err))
	}
}

// TestMissing: what the rules need and no file has is named, with the command that makes it.
//
// Seen to fail without the words about fair share.
func TestMissing(t *testing.T) {
	const whole = "Cluster - 'c'\nParent - 'root'\nAccount - 'a':Fairshare=1\n"
	for name, c := range map[string]struct {
		files []File
		want  []string // beginnings
	}{
		"slurm.conf alone": {
			[]File{{"slurm.conf", "ClusterName=c\nNodeName=n1\nPartitionName=p Nodes=n1\nPriorityWeightFairshare=5\n"}},
			[]string{"accounts and users: until the rules have some, every account name is taken, and priority.fair_share has no effect"},
		},
		"a dump alone": {
			[]File{{"dump.cfg", whole}},
			[]string{"partitions, nodes, priorities and preemption: no slurm.conf was named"},
		},
		"QOS that nobody defines": {
			[]File{{"slurm.conf", "NodeName=n1\nPartitionName=p Nodes=n1 QOS=big\n"}, {"dump.cfg", whole}},
			[]string{"limits and priority of QOS big: no file defines it"},
		},
		"QOS that say whom they preempt": {
			[]File{{"slurm.conf", "PreemptType=preempt/qos\nNodeName=n1\nPartitionName=p Nodes=n1\n"}, {"dump.cfg", whole}},
			[]string{"QOS: PreemptType=preempt/qos has no effect"},
		},
		"nodes": {
			[]File{{"slurm.conf", "PartitionName=p Nodes=n1\n"}, {"dump.cfg", whole}},
			[]string{"nodes: slurm.conf has no NodeName lines"},
		},
		"nothing": {
			[]File{{"slurm.conf", "NodeName=n1\nPartitionName=p Nodes=n1 QOS=big\n"}, {"dump.cfg", whole}, {"qos.txt", "Name|Priority\nbig|3\n"}},
			nil,
		},
	} {
		r, err := Read(c.files, Options{})
		if err != nil {
			t.Fatal(err)
		}
		same := len(r.Report.Missing) == len(c.want)
		for i := range c.want {
			same = same && strings.HasPrefix(r.Report.Missing[i].What, c.want[i]) && r.Report.Missing[i].Remedy != ""
		}
		if !same {
			t.Errorf("%s: %+v", name, r.Report.Missing)
		}
	}
}

// TestWhatChangesDecisions: settings without which jobs run differently are refused or approximated,
// others are kept or ignored; --brief shows the first alone.
func TestWhatChangesDecisions(t *testing.T) {
	for text, want := range map[string]policy.Verdict{
		"DefMemPerCPU=100":                      policy.Refused,
		"PartitionName=p DefMemPerNode=100":     policy.Refused,
		"PartitionName=p State=DOWN":            policy.Refused,
		"PartitionName=p Hidden=YES":            policy.Ignored,
		"PreemptMode=REQUEUE":                   policy.Kept,
		"ReturnToService=1":                     policy.Refused,
		"ReturnToService=2":                     policy.Ignored,
		"SelectType=select/linear":              policy.Approximated,
		"SelectType=select/cons_tres":           policy.Kept,
		"SelectTypeParameters=CR_Core":          policy.Approximated,
		"HealthCheckProgram=/usr/sbin/nhc":      policy.Refused,
		"HealthCheckInterval=300":               policy.Ignored,
		"SchedulerParameters=bf_continue":       policy.Ignored,
		"SchedulerParameters=bf_max_job_user=3": policy.Refused,
		"NodeName=n1 Weight=10":                 policy.Refused,
		"NodeName=n1 NodeAddr=10.0.0.1":         policy.Ignored,
		"KillWait=30":                           policy.Elsewhere,
	} {
		r, err := Read([]File{{"slurm.conf", text + "\n"}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Report.Findings[len(r.Report.Findings)-1]; got.Verdict != want {
			t.Errorf("%s is %s, want %s", text, got.Verdict, want)
		}
	}
}
