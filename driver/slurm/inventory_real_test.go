package slurm_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestStock: on real clusters with rules of every kind, both ways in tell the same; what is
// refused by them Slurm itself refuses or never begins; an administrator's drain and hold
// are shown with their reasons, and neither is undone.
func TestStock(t *testing.T) {
	t.Parallel()
	for version, c := range clusters {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c.Nodes = 3
			c.More = "Licenses=matlab:4\nAccountingStorageTRES=gres/gpu\nAccountingStorageEnforce=associations,limits,qos"
			l := lab.Start(t, c)
			rules(t, l)
			theSame(t, l)
			locks, err := openHere(filepath.Join(t.TempDir(), "locks"))
			if err != nil {
				t.Fatal(err)
			}
			e, err := slurm.New(slurm.Config{
				Root: filepath.Join(t.TempDir(), "state"), Pool: "slurm", Site: byREST(t, l, l.Command()), Room: locks, Privileged: true,
				Settle: 3 * time.Second, Tidy: time.Second, Stock: time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close() })
			refusals(t, l, e)
			hands(t, l, e)
		})
	}
}

// rules has a cluster have rules of every kind.
func rules(t *testing.T, l *lab.Lab) {
	t.Helper()
	for _, w := range [][]string{
		{"sacctmgr", "-i", "add", "account", "physics", "Description=x", "Organization=y", "GrpTRES=gres/gpu=4", "MaxWall=120"},
		{"sacctmgr", "-i", "add", "qos", "capped", "MaxWall=01:30:00", "MaxJobsPerUser=1", "MaxTRESPerUser=cpu=8"},
		{"sacctmgr", "-i", "add", "user", "nobody", "account=physics", "qos=normal,capped", "MaxJobs=3"},
		{"sacctmgr", "-i", "modify", "account", "root", "set", "qos=normal,capped"},
		{"scontrol", "create", "PartitionName=short", "Nodes=" + l.Nodes[0], "MaxTime=30", "MaxNodes=1", "State=UP", "AllowAccounts=physics,root", "AllowQos=normal"},
		{"scontrol", "create", "reservation", "ReservationName=course", "StartTime=now", "Duration=120", "Nodes=" + l.Nodes[2], "Users=nobody"},
		{"scontrol", "update", "NodeName=" + l.Nodes[1], "State=DRAIN", "Reason=fan is loud"},
		{"sbatch", "--gpus-per-node=2", "--comment=not ours", "--output=/dev/null", "--time=20", "--wrap=sleep 600"},
		{"sbatch", "--hold", "--array=1-50", "--partition=short", "--output=/dev/null", "--time=20", "--wrap=true"},
	} {
		l.Run(t, w[0], w[1:]...)
	}
}

// theSame: what both ways tell.
func theSame(t *testing.T, l *lab.Lab) {
	t.Helper()
	commands, rest := l.Command(), byREST(t, l, nil)
	defer rest.Close() //nolint:errcheck // a test's
	want, err := commands.Stock(t.Context())
	if err != nil || len(want.Unknown) > 0 || len(want.Partitions) != 2 || len(want.Licenses) != 1 || !slices.Contains(want.Enforced, "qos") {
		t.Fatalf("%+v, %v", want, err)
	}
	got, err := rest.Stock(t.Context())
	if err != nil || len(got.Unknown) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range got.Partitions { // later versions of slurmrestd do not tell it
		got.Partitions[i].Default = want.Partitions[i].Default
	}
	by := func(a, b fleet.Association) int { return strings.Compare(a.Account+" "+a.User, b.Account+" "+b.User) }
	slices.SortFunc(got.Associations, by)
	slices.SortFunc(want.Associations, by)
	same(t, got.Partitions, want.Partitions)
	same(t, got.QOS, want.QOS)
	same(t, got.Associations, want.Associations)
	same(t, got.Reservations, want.Reservations)
	same(t, got.Licenses, want.Licenses)
	awaits(t, "the same of everybody's jobs", func() bool {
		a, err := commands.Everyone(t.Context())
		b, err2 := rest.Everyone(t.Context())
		return err == nil && err2 == nil && len(a) == 2 && slices.EqualFunc(sorted(a), sorted(b), func(x, y site.Held) bool {
			return x.User == y.User && x.Partition == y.Partition && x.Comment == y.Comment && x.Running == y.Running && x.CPUs == y.CPUs && x.GPUs == y.GPUs && slices.Equal(x.Nodes, y.Nodes)
		})
	})
}

func sorted(all []site.Held) []site.Held {
	slices.SortFunc(all, func(a, b site.Held) int { return strings.Compare(a.Partition, b.Partition) })
	return all
}

// refusals: what is refused here Slurm refuses, or holds for ever with the reason.
func refusals(t *testing.T, l *lab.Lab, e *slurm.Engine) {
	t.Helper()
	awaits(t, "the inventory", func() bool { return e.Inventory() != nil })
	for _, c := range []struct {
		spec  *job.Spec
		rule  string
		flags []string
		waits string // Slurm's word; empty: sbatch refuses it
	}{
		{&job.Spec{Partitions: []string{"short"}, TimeLimit: 50 * time.Minute}, "partition short: at most 00:30:00", []string{"--partition=short", "--time=50"}, "PartitionTimeLimit"},
		{&job.Spec{QOS: "capped", TimeLimit: 2 * time.Hour}, "QOS capped: at most 01:30:00", []string{"--qos=capped", "--time=120"}, "QOSMaxWallDurationPerJobLimit"},
		{&job.Spec{Partitions: []string{"shrt"}}, "no partition shrt", []string{"--partition=shrt"}, ""},
		{&job.Spec{Account: "physik"}, "account physik", []string{"--account=physik", "--uid=nobody"}, ""},
		{&job.Spec{QOS: "hgh"}, "no QOS hgh", []string{"--qos=hgh"}, ""},
		{&job.Spec{Reservation: "cource"}, "no reservation cource", []string{"--reservation=cource"}, ""},
		{&job.Spec{Licenses: "matlab:5"}, "licence matlab: there are 4", []string{"--licenses=matlab:5"}, ""},
	} {
		if err := e.Admit(t.Context(), draft(c.spec)); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.rule) || fault.Remedy(err) == "" {
			t.Errorf("%q: %v", c.flags, err)
		}
		out, err := l.Try(t.Context(), "sbatch", append(c.flags, "--parsable", "--output=/dev/null", "--chdir=/", "--wrap=true")...)
		switch id := strings.TrimSpace(out); {
		case c.waits == "" && err == nil:
			t.Errorf("%q: Slurm takes it", c.flags)
		case c.waits != "" && err != nil:
			t.Errorf("%q: %v", c.flags, err)
		case c.waits != "":
			awaits(t, c.waits, func() bool {
				out, err := l.Try(t.Context(), "squeue", "--noheader", "--jobs="+id, "--Format=Reason:80")
				return err == nil && strings.TrimSpace(out) == c.waits
			})
			l.Run(t, "scancel", id)
		}
	}
	if err := e.Admit(t.Context(), draft(&job.Spec{Partitions: []string{"short"}, TimeLimit: 30 * time.Minute, Licenses: "matlab:4", Reservation: "course"})); err != nil {
		t.Error(err)
	}
}

// hands: a drain and a hold by an administrator stay what they are, and are shown.
func hands(t *testing.T, l *lab.Lab, e *slurm.Engine) {
	t.Helper()
	l.Run(t, "scontrol", "update", "NodeName="+l.Nodes[0], "State=DRAIN", "Reason=soon back")
	mine := another(t.TempDir(), 1, 1)
	mine.Script = []byte("#!/bin/sh\nexit 5\n")
	if err := e.Launch(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	r := until(t, e, func(r engine.Report) bool { return r.Native != "" && r.Message != "" })
	l.Run(t, "scontrol", "hold", r.Native)
	until(t, e, func(r engine.Report) bool { return r.Message == "JobHeldAdmin" })
	l.Run(t, "scontrol", "update", "NodeName="+l.Nodes[0], "State=RESUME")
	polls := e.Polls().Count
	awaits(t, "three polls", func() bool { return e.Polls().Count >= polls+3 })
	if _, err := e.Nodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := l.Run(t, "squeue", "--noheader", "--jobs="+r.Native, "--Format=State:20,Reason:30"); strings.Join(strings.Fields(out), " ") != "PENDING JobHeldAdmin" {
		t.Errorf("the hold: %s", out)
	}
	var inv *fleet.Inventory
	awaits(t, "the job of others among everybody's, and ours", func() bool {
		_ = e.Admit(t.Context(), draft(&job.Spec{Partitions: []string{"shrt"}})) // has it taken anew, whatever an answer costs
		inv = e.Inventory()
		has := func(u fleet.Use) bool {
			return slices.ContainsFunc(inv.Use, func(v fleet.Use) bool { v.CPUs = u.CPUs; return u == v })
		}
		_, err := e.Nodes(t.Context())
		return err == nil && has(fleet.Use{User: "root", Partition: "main", Running: 1, Nodes: 1, GPUs: 2}) && has(fleet.Use{User: "root", Partition: "main", Ours: true, Waiting: 1})
	})
	inv = e.Inventory() // with the nodes as they are now
	at := map[string]*fleet.NodeStock{}
	for i := range inv.Nodes {
		at[inv.Nodes[i].Name] = &inv.Nodes[i]
	}
	if n := at[l.Nodes[1]]; n == nil || n.Level != fleet.Draining || !strings.HasPrefix(n.Why, "fan is loud") || !strings.Contains(n.State, "drain") {
		t.Errorf("the drained node: %+v", n)
	}
	if n := at[l.Nodes[0]]; n == nil || n.GPUs != 8 || n.GPUsOthers != 2 || n.GPUsOurs != 0 || n.CPUsOthers < 1 || !slices.Contains(n.Partitions, "short") {
		t.Errorf("the node in use: %+v", n)
	}
	if n := at[l.Nodes[2]]; n == nil || n.Reservation != "course" {
		t.Errorf("the reserved node: %+v", n)
	}
	l.Run(t, "scontrol", "release", r.Native)
	if r := until(t, e, func(r engine.Report) bool { return r.Gone }); r.Cause != engine.Exited || r.Exit.Status != 5 {
		t.Errorf("%+v", r)
	}
	if out := l.Run(t, "scontrol", "show", "node", l.Nodes[1]); !strings.Contains(out, "DRAIN") || !strings.Contains(out, "Reason=fan is loud") {
		t.Errorf("the drain was undone: %s", out)
	}
}
