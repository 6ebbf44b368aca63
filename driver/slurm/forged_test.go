package slurm_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestAnothersWord: another user who has learned the names of an attempt's files says that it
// ended, and that nothing of it lives. That is not believed, whatever Slurm has lost.
//
// Seen to fail with: no look at whose the file is, of the end and of the probe.
func TestAnothersWord(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can write as two users")
	}
	for name, word := range map[string]struct{ file, text string }{
		"end": {".done", "0\n"}, "probe": {".probe.n1", "none\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{}
			e, _, _ := play(t, s)
			lock := s.act(t, time.Now(), "n1")
			for _, f := range []struct {
				name, text string
				uid        int
			}{{".begun", "", 61001}, {word.file, word.text, 61002}} {
				file := lock + f.name
				if err := errors.Join(os.WriteFile(file+".new", []byte(f.text), 0o644), os.Chown(file+".new", f.uid, f.uid), os.Rename(file+".new", file)); err != nil {
					t.Fatal(err)
				}
			}
			s.with(func() { s.jobs[0].State, s.jobs[0].Nodes, s.jobs[0].Started = site.Running, []string{"n1"}, time.Now() })
			until(t, e, func(r engine.Report) bool { return r.Phase == engine.Running })
			s.with(func() { s.jobs = nil })
			if r := until(t, e, func(r engine.Report) bool { return r.Uncertain || r.Gone }); r.Gone {
				t.Fatalf("%+v", r)
			}
			lost := e.Polls().Count
			awaits(t, "polls", func() bool { return e.Polls().Count > lost+30 })
			if all, err := e.List(t.Context()); err != nil || all[0].Gone {
				t.Errorf("%+v, %v", all, err)
			}
		})
	}
}

// muted is a stage that gives no answer about jobs once one was ended.
type muted struct {
	*stage
	asked int
	speak bool
}

func (m *muted) Jobs(ctx context.Context, ids []uint32) (out []site.Job, err error) {
	silent := false
	m.with(func() {
		if silent = len(m.cancelled) > 0 && !m.speak; silent {
			m.asked++
		}
	})
	if silent {
		return nil, fault.New(fault.Unavailable, "no answer")
	}
	return m.stage.Jobs(ctx, ids)
}

// TestSilenceIsNoEnd: a job whose script has said its last word is ended in Slurm, and nothing
// more is heard. Its processes may have their time to end yet: it is not gone.
//
// Seen to fail with: the time alone.
func TestSilenceIsNoEnd(t *testing.T) {
	s := &muted{stage: &stage{}}
	e, root := stageWith(t, s.stage, func(c *slurm.Config) { c.Site = s })
	ref := begin(t, e, root)
	lock := s.act(t, time.Now(), "n1")
	s.with(func() { s.jobs[0].State, s.jobs[0].Nodes, s.jobs[0].Started = site.Running, []string{"n1"}, time.Now() })
	for hint, text := range map[string]string{".begun": "", ".done": "4\n"} {
		if err := os.WriteFile(lock+hint, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asked := func() (n int) { s.with(func() { n = s.asked }); return n }
	awaits(t, "silence", func() bool { return asked() > 40 }) // longer than Settle
	if err := e.Stop(t.Context(), ref, engine.Stop{Grace: time.Hour}); err != nil {
		t.Fatal(err)
	}
	n := asked()
	awaits(t, "more of it", func() bool { return asked() > n+40 })
	if r, err := e.Inspect(t.Context(), ref); err != nil || r.Gone {
		t.Errorf("%+v, %v", r, err)
	}
	s.with(func() { s.speak = true })
	if r := until(t, e, gone); r.Exit != (job.ExitCode{Status: 4}) {
		t.Errorf("%+v", r)
	}
}

// shut is a stage whose Slurm shows jobs to their users alone, from some day on.
type shut struct {
	*stage
	operator bool
}

func (s *shut) Cluster(ctx context.Context) (site.Cluster, error) {
	c, err := s.stage.Cluster(ctx)
	c.MinAge = time.Nanosecond
	return c, err
}

func (s *shut) Look(context.Context) (*site.Look, error) {
	return &site.Look{Settings: map[string]string{"PrivateData": "accounts,jobs"}}, nil
}

func (s *shut) Me(context.Context) (p site.Person, err error) {
	s.with(func() { p = site.Person{Name: "cox", UID: 61003, Operator: s.operator} })
	return p, nil
}

func (s *shut) Person(_ context.Context, name string) (site.Person, error) {
	return site.Person{Name: name, UID: 61001}, nil
}

// TestWhatIsNotShownLives: Slurm has a job that runs and shows it no more, as PrivateData was
// set meanwhile. It is not taken for one that ended long ago and was purged.
//
// Seen to fail with: no look at PrivateData.
func TestWhatIsNotShownLives(t *testing.T) {
	s := &shut{stage: &stage{}}
	e, root := stageWith(t, s.stage, func(c *slurm.Config) { c.Site, c.Identity.Mode = s, slurm.AsOwner })
	err := e.Launch(t.Context(), &engine.Launch{
		Ref: engine.Ref{Allocation: 1, Attempt: 1}, Script: []byte("#!/bin/sh\n"), Claims: []fleet.Claim{{Node: "n1", Tasks: 1}},
		Job: &job.Job{ID: 7, Spec: &job.Spec{WorkDir: root, Owner: job.Owner{User: "u", UID: 61001}, Groups: make([]job.TaskGroup, 1), Program: job.Program{Kind: job.Batch}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lock := s.act(t, time.Now(), "-")
	if err := os.WriteFile(lock+".begun", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.with(func() { s.jobs[0].State, s.jobs[0].Nodes, s.jobs[0].Started = site.Running, []string{"n1"}, time.Now() })
	until(t, e, func(r engine.Report) bool { return r.Phase == engine.Running })
	s.with(func() { s.jobs = nil })
	if r := until(t, e, func(r engine.Report) bool { return r.Uncertain || r.Gone }); r.Gone || !strings.Contains(r.Message, "PrivateData") {
		t.Fatalf("%+v", r)
	}
	s.with(func() { s.operator = true })
	until(t, e, gone)
}
