package command_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// counting notes what is run.
type counting struct {
	command.Runner
	ran []string
}

func (c *counting) Run(ctx context.Context, call command.Call) (command.Result, error) {
	c.ran = append(c.ran, call.Name+" "+strings.Join(call.Args, " "))
	return c.Runner.Run(ctx, call)
}

// states: of many jobs the records are read once, and again of those whose state has
// changed, where squeue can ask for states (from 24.05 on).
func states(t *testing.T, l *lab.Lab, modern bool) {
	c := &counting{Runner: &command.Here{Env: l.Env, Before: l.Inside}}
	s := command.New(c)
	var ids []uint32
	submit := func(options []string, components ...[]string) {
		id, err := s.Submit(t.Context(), &site.Submission{Script: []byte("#!/bin/sh\n"), Options: append(options, "--output=/dev/null"), Components: components, Dir: "/tmp"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for range site.Few {
		submit([]string{"--hold"})
	}
	submit([]string{"--hold", "-n1"}, []string{"-n1"})
	ask := func() (all []site.Job, ran []string) {
		c.ran = nil
		all, err := s.Jobs(t.Context(), append(ids, 4_000_000))
		if err != nil {
			t.Fatal(err)
		}
		return all, c.ran
	}
	if all, ran := ask(); len(all) != len(ids)+1 { // the heterogeneous job has two
		t.Fatalf("%d records of %d jobs: %q", len(all), len(ids), ran)
	}
	all, ran := ask()
	if len(all) != len(ids)+1 || modern && (len(ran) != 1 || !strings.Contains(ran[0], "--only-job-state")) || !modern && (len(ran) != 1 || strings.Contains(ran[0], "--only-job-state")) {
		t.Errorf("nothing has changed: %d records, ran %q", len(all), ran)
	}
	for _, id := range []uint32{ids[2], ids[len(ids)-1]} {
		if err := s.Kill(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		all, _ := ask() // scancel has answered: slurmctld has done it
		if i := slices.IndexFunc(all, func(j site.Job) bool { return j.ID == id }); i < 0 || all[i].State != site.Cancelled || len(all) != len(ids)+1 {
			t.Errorf("job %d was cancelled: %+v", id, all)
		}
	}
	for _, id := range ids {
		if err := s.Kill(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
}
