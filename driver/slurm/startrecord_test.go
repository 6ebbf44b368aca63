package slurm_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// act has the job of a stage take its lock on a node, as its script would.
func (s *stage) act(t *testing.T, began time.Time, nodes string) (lock string) {
	t.Helper()
	s.taken(t)
	s.with(func() {
		_, rest, _ := strings.Cut(s.script, ">'")
		stem, _, _ := strings.Cut(rest, "'")
		lock = stem + "0"
		text := fmt.Sprintf("%d 0 %s %d - %s\n", s.jobs[0].ID, nodes, began.Unix(), nodes)
		if err := os.WriteFile(lock, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	return lock
}

// ends gives the job of a stage its final record.
func (s *stage) ends(state site.State, began time.Time, nodes ...string) {
	s.with(func() {
		j := &s.jobs[0]
		j.State, j.Nodes, j.Started, j.Ended, j.CancelledBy = state, nodes, began, began, "0"
	})
}

// TestASecondBeginning: slurmctld that had lost that a job runs began it again, and slurmd had
// that cancelled, as root. On the same nodes both are over; else nobody knows, until the
// script says so itself.
//
// Seen to fail with: every final record covering; no look at the nodes.
func TestASecondBeginning(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	t.Run("same node", func(t *testing.T) {
		s := &stage{}
		e, _, _ := play(t, s)
		s.act(t, now.Add(-10*time.Second), "n1")
		s.ends(site.Cancelled, now.Add(-5*time.Second), "n1")
		if r := until(t, e, gone); r.Cause != engine.NodeLost || r.Exit.Signal != 9 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("another node", func(t *testing.T) {
		s := &stage{}
		e, _, _ := play(t, s)
		lock := s.act(t, now.Add(-10*time.Second), "n1")
		s.ends(site.Cancelled, now.Add(-5*time.Second), "n2")
		until(t, e, func(r engine.Report) bool {
			if r.Gone {
				t.Errorf("an end without a proof: %+v", r)
			}
			return r.Uncertain || r.Gone
		})
		if err := os.WriteFile(lock+".done", []byte("3\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := until(t, e, gone); r.Cause != engine.Exited || r.Exit != (job.ExitCode{Status: 3}) {
			t.Errorf("%+v", r)
		}
	})
}

// TestWhoCancelled: root's own scancel of a running job is a person's, and so is any of a
// job that waits. One of a job that had nodes and never began may be slurmd's, and any soon after a crash.
//
// Seen to fail with: a job that never began being judged by its state alone.
func TestWhoCancelled(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	for name, c := range map[string]struct {
		begins bool
		nodes  []string
		age    time.Duration // of slurmctld
		want   engine.Cause
	}{
		"running":                {true, []string{"n1"}, time.Hour, engine.Cancelled},
		"waiting":                {false, nil, time.Hour, engine.Cancelled},
		"waiting, after a crash": {false, nil, 10 * time.Second, engine.Unready},
		"allocated, never begun": {false, []string{"n1"}, time.Hour, engine.Unready},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{age: c.age}
			e, _, _ := play(t, s)
			s.taken(t)
			if c.begins {
				s.act(t, now.Add(-5*time.Second), "n1")
			}
			s.ends(site.Cancelled, now.Add(-5*time.Second), c.nodes...)
			if r := until(t, e, gone); r.Cause != c.want {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestANodeThatFailsFirst: a job whose node failed before its script took the lock has run
// nothing, and is not ready; one that has no nodes lost those that it asks for.
//
// Seen to fail with: the cause that Slurm's state names.
func TestANodeThatFailsFirst(t *testing.T) {
	for cause, nodes := range map[engine.Cause][]string{engine.Unready: {"n1"}, engine.NodeLost: nil} {
		t.Run(string(cause), func(t *testing.T) {
			s := &stage{}
			e, _, _ := play(t, s)
			s.taken(t)
			s.ends(site.NodeFailed, time.Now().Add(-5*time.Second), nodes...)
			if r := until(t, e, gone); r.Cause != cause || len(r.Tasks) != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestSlurmHasNotHeardOfTheEnd: slurmctld calls a job running whose script has said its last
// word. The job is ended in Slurm too, and reported as the script said.
//
// Seen to fail with: no end in Slurm; waiting for slurmctld.
func TestSlurmHasNotHeardOfTheEnd(t *testing.T) {
	s := &stage{}
	e, root := stageWith(t, s, func(c *slurm.Config) { c.Tidy = time.Hour }) // which would end it once more
	begin(t, e, root)
	lock := s.act(t, time.Now(), "n1")
	s.with(func() { s.jobs[0].State, s.jobs[0].Nodes, s.jobs[0].Started = site.Running, []string{"n1"}, time.Now() })
	for hint, text := range map[string]string{".begun": "", ".done": "4\n"} {
		if err := os.WriteFile(lock+hint, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := until(t, e, gone); r.Cause != engine.Exited || r.Exit != (job.ExitCode{Status: 4}) || r.Started.IsZero() {
		t.Errorf("%+v", r)
	}
	s.with(func() {
		if len(s.cancelled) != 1 {
			t.Errorf("ended in Slurm: %d", s.cancelled)
		}
	})
}

// TestAnExitCodeThatSlurmDoesNotKnow: accounting by slurmrestd v0.0.38 says 1 of every job that
// failed. The script's own word counts.
//
// Seen to fail with: Slurm's exit code counting always.
func TestAnExitCodeThatSlurmDoesNotKnow(t *testing.T) {
	s := &stage{}
	e, _, _ := play(t, s)
	now := time.Now().Truncate(time.Second)
	lock := s.act(t, now, "n1")
	if err := os.WriteFile(lock+".done", []byte("3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.with(func() { s.jobs[0].Exit = job.ExitCode{Status: 1} })
	s.ends(site.Failed, now, "n1")
	if r := until(t, e, gone); r.Cause != engine.Exited || r.Exit != (job.ExitCode{Status: 3}) {
		t.Errorf("%+v", r)
	}
}

// TestSlurmCancelsWhatRuns: a running job is cancelled by nobody that accounting knows, or as
// root soon after slurmctld began anew. No person did that, and the job is not given up.
//
// Seen to fail with: every cancellation being a person's; no look at when slurmctld began.
func TestSlurmCancelsWhatRuns(t *testing.T) {
	for name, c := range map[string]struct {
		by   string
		age  time.Duration // of slurmctld
		want engine.Cause
	}{
		"nobody":               {"", time.Hour, engine.NodeLost},
		"root, after a crash":  {"0", 10 * time.Second, engine.NodeLost},
		"root":                 {"0", time.Hour, engine.Cancelled},
		"a user after a crash": {"1000", 10 * time.Second, engine.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{age: c.age}
			e, _, _ := play(t, s)
			began := time.Now().Add(-20 * time.Second).Truncate(time.Second)
			s.act(t, began, "n1")
			s.with(func() {
				j := &s.jobs[0]
				j.State, j.Nodes, j.Started, j.Ended, j.CancelledBy = site.Cancelled, []string{"n1"}, began, began.Add(15*time.Second), c.by
			})
			if r := until(t, e, gone); r.Cause != c.want || r.Exit.OK() || r.Message == "" {
				t.Errorf("%+v", r)
			}
		})
	}
}
