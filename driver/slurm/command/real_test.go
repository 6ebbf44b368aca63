package command_test

import (
	"context"
	"os/user"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

func await(t *testing.T, s *command.Site, id uint32, until func(*site.Job) bool) *site.Job {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		all, err := s.Jobs(t.Context(), []uint32{id, 4_000_000})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 && all[0].ID == id && until(&all[0]) {
			return &all[0]
		}
	}
	t.Fatalf("job %d did not come so far", id)
	return nil
}

func TestAJobOnARealCluster(t *testing.T) {
	for version, c := range map[string]lab.Config{"22.05": {}, "24.11": {Modern: true}} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			l := lab.Start(t, c)
			aJob(t, l.Command())
			pods(t, l, c.Modern)
			states(t, l, c.Modern)
		})
	}
}

func aJob(t *testing.T, s *command.Site) {
	ctx := t.Context()
	c, err := s.Cluster(ctx)
	if err != nil || c.Name == "" || c.Version == "" || c.Booted.IsZero() || !c.Accounts {
		t.Fatalf("%+v, %v", c, err)
	}
	id, err := s.Submit(ctx, &site.Submission{
		Script: []byte("#!/bin/bash\n#SBATCH -N 2 --export=NONE\n[ \"$1 $SAID\" = \"a b it's\" ] || exit 9\n[ -z \"$HOME$LC_ALL\" ] || exit 8\nexit 3\n"), Args: []string{"a b"}, Env: []string{"SAID=it's"},
		Options: []string{"--comment=cox:x:1:1.1 of | mine", "--output=/dev/null"}, Dir: "/tmp",
	})
	if err != nil {
		t.Fatal(err)
	}
	j := await(t, s, id, func(j *site.Job) bool { return j.State.Final() })
	me, _ := user.Current()
	if j.State != site.Failed || j.Exit.Status != 3 || len(j.Nodes) != 2 || j.Comment != "cox:x:1:1.1 of | mine" || j.User != me.Username || j.Started.IsZero() || j.Ended.Before(j.Started) {
		t.Errorf("%+v", j)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) { // accounting lags behind
		past, err := s.Past(ctx, []uint32{id})
		if err != nil {
			t.Fatal(err)
		}
		if len(past) == 1 && past[0].State == site.Failed && past[0].Exit.Status == 3 && past[0].ID == id {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("accounting says %+v", past)
		}
	}
	if all, err := s.Jobs(ctx, []uint32{4_000_000}); err != nil || len(all) != 0 {
		t.Errorf("an unknown job: %+v, %v", all, err)
	}
	if err := s.End(ctx, 4_000_000); err != nil {
		t.Errorf("the end of an unknown job: %v", err)
	}
	if _, err := s.Submit(ctx, &site.Submission{Script: []byte("#!/bin/sh\n"), Options: []string{"--partition=nix"}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a partition that is not there: %v", err)
	}
	id, err = s.Submit(ctx, &site.Submission{Script: []byte("#!/bin/sh\nsleep 600\n"), Options: []string{"--output=/dev/null"}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, s, id, func(j *site.Job) bool { return j.State == site.Running && !j.Completing })
	if err := s.End(ctx, id); err != nil {
		t.Fatal(err)
	}
	if j := await(t, s, id, func(j *site.Job) bool { return j.State.Final() && !j.Completing }); j.State != site.Cancelled {
		t.Errorf("%+v", j)
	}
	nodes, err := s.Nodes(ctx)
	if err != nil || len(nodes) < 2 || nodes[0].CPUs == 0 || nodes[0].Memory == 0 || len(nodes[0].Parts) == 0 || !nodes[0].Available || !slices.Equal(nodes[0].Path, []string{"spine", "leaf1"}) || nodes[0].GRES == "" {
		t.Errorf("%+v, %v", nodes, err)
	}
	gone := command.New(&command.Here{Env: []string{"SLURM_CONF=/nonexistent"}})
	short, stop := context.WithTimeout(ctx, time.Second) // Slurm itself would try for a minute
	defer stop()
	if _, err := gone.Cluster(short); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a cluster that does not answer: %v", err)
	}
}

// pods: what operators write about the pods of slurmds is read as they write it.
func pods(t *testing.T, l *lab.Lab, modern bool) {
	s := l.Command()
	pod := func(i int) site.Pod {
		t.Helper()
		all, err := s.Nodes(t.Context())
		if err != nil || len(all) != len(l.Nodes) {
			t.Fatalf("%+v, %v", all, err)
		}
		for _, n := range all {
			if p, ok := n.Pod(); n.Name == l.Nodes[i] && ok {
				return p
			}
		}
		return site.Pod{}
	}
	slinky := `{"namespace":"slurm","podName":"slurm-worker-0","node":"kube-7","nodeSetName":"w","nodeSetUID":"1"}`
	l.Run(t, "scontrol", "update", "nodename="+l.Nodes[0], "comment="+slinky)
	l.Run(t, "scontrol", "update", "nodename="+l.Nodes[1], "comment=lines\nof | people", "extra="+slinky)
	for i := range 2 {
		if p := pod(i); p != (site.Pod{Namespace: "slurm", Name: "slurm-worker-0", Node: "kube-7", By: "Slinky"}) {
			t.Errorf("node %d is in %+v", i, p)
		}
	}
	if p := pod(2); p != (site.Pod{}) {
		t.Errorf("a node of which nobody says anything is in %+v", p)
	}
	if !modern {
		return // 22.05 keeps no ids of instances
	}
	l.Run(t, "scontrol", "update", "nodename="+l.Nodes[2], "nodeaddr="+l.Nodes[2]+".worker.soperator.svc", "instanceid=kube-8", "comment=x InstanceId=kube-9 y")
	if p := pod(2); p != (site.Pod{Namespace: "soperator", Name: l.Nodes[2], Node: "kube-8", By: "Soperator"}) {
		t.Errorf("it is in %+v", p)
	}
}
