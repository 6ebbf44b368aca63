package slurm_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	wrap "github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// answering is a stage whose nodes answer who asks them, or not.
type answering struct {
	stage

	says   map[string]int // by node, the exit status of the job that asks; none: it waits
	asked  []string       // the nodes that were
	probes []site.Job
	refuse error // of jobs that ask
	booted time.Time

	searched int // how often accounting was, for a user's jobs
}

func (s *answering) PastOf(context.Context, string, time.Time) ([]site.Job, error) {
	s.with(func() { s.searched++ })
	return nil, nil
}

func (s *answering) Cluster(context.Context) (c site.Cluster, err error) {
	s.with(func() {
		c = site.Cluster{Name: "stage", Version: "22.05.8", Booted: s.booted, MinAge: 5 * time.Minute, Accounts: true}
	})
	return c, nil
}

func (s *answering) Submit(ctx context.Context, j *site.Submission) (id uint32, err error) {
	option := func(name string) string {
		for _, o := range j.Options {
			if v, ok := strings.CutPrefix(o, "--"+name+"="); ok {
				return v
			}
		}
		return ""
	}
	if option("job-name") != "cox-probe" {
		return s.stage.Submit(ctx, j)
	}
	s.with(func() {
		if err = s.refuse; err != nil {
			return
		}
		node := option("nodelist")
		id = uint32(1000 + len(s.asked))
		s.asked = append(s.asked, node)
		p := site.Job{ID: id, State: site.Pending, Comment: option("comment"), Nodes: []string{node}}
		if status, ok := s.says[node]; ok {
			p.State, p.Exit = site.Failed, job.ExitCode{Status: status}
		}
		s.probes = append(s.probes, p)
	})
	return id, err
}

func (s *answering) Jobs(ctx context.Context, ids []uint32) ([]site.Job, error) {
	out, err := s.stage.Jobs(ctx, ids)
	s.with(func() {
		for _, p := range s.probes {
			if slices.Contains(ids, p.ID) {
				out = append(out, p)
			}
		}
	})
	return out, err
}

// blindly opens an engine with its locks on two nodes, and hands one attempt over.
func blindly(t *testing.T, s *answering) (*slurm.Engine, engine.Ref) {
	t.Helper()
	s.nodes = []site.Node{{Name: "n1", Available: true}, {Name: "n2", Available: true}}
	if s.booted.IsZero() {
		s.booted = time.Now().Add(-time.Hour)
	}
	dir := t.TempDir() // no driver may need the directory of the nodes
	e, root := stageWith(t, &s.stage, func(c *slurm.Config) {
		c.Site, c.Room = s, lockdir.OnNodes(filepath.Join(dir, "none"))
	})
	ref := engine.Ref{Allocation: 1, Attempt: 1}
	err := e.Launch(t.Context(), &engine.Launch{
		Ref: ref, Job: &job.Job{ID: 7, Spec: &job.Spec{WorkDir: root, Groups: make([]job.TaskGroup, 1), Program: job.Program{Kind: job.Batch}}},
		Script: []byte("#!/bin/sh\n"), Claims: []fleet.Claim{{Node: "n1", Tasks: 1}, {Node: "n2", Tasks: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.taken(t)
	return e, ref
}

// word is the exit status by which a node says that an attempt ended there with a status.
func word(exit int) int { return 130 + exit }

// TestWithoutASharedDirectory: what is reported of what Slurm says and what the nodes say.
//
// Seen to fail with: Slurm's word alone; a node that has not answered taken for one on which
// nothing lives; what never began on one node alone; what never began taken for true of what ran.
func TestWithoutASharedDirectory(t *testing.T) {
	const fencedHere, livesHere, silent = wrap.ExitFenced, wrap.ExitLives, wrap.ExitSilent
	type says = map[string]int
	failed := func(code int) site.Job { return site.Job{State: site.Failed, Exit: job.ExitCode{Status: code}} }
	for name, tt := range map[string]struct {
		job   *site.Job // what slurmctld says; nil: it does not know it
		anew  bool      // slurmctld began after the job was handed over
		ran   bool      // it was seen to run before
		away  []string  // nodes that are down
		says  says
		cause engine.Cause // empty: it is uncertain
		exit  job.ExitCode
		asks  bool
	}{
		"done":                           {job: &site.Job{State: site.Completed}, cause: engine.Exited},
		"failed":                         {job: ptr(failed(3)), cause: engine.Exited, exit: job.ExitCode{Status: 3}},
		"cancelled by a person":          {job: &site.Job{State: site.Cancelled, CancelledBy: "1000"}, cause: engine.Cancelled, exit: job.ExitCode{Signal: 15}},
		"its time was up":                {job: &site.Job{State: site.TimedOut}, cause: engine.TimedOut, exit: job.ExitCode{Signal: 15}},
		"failed at once, never ran":      {job: ptr(failed(1)), says: says{"n1": fencedHere, "n2": fencedHere}, cause: engine.Unready, exit: job.ExitCode{Status: 1}, asks: true},
		"failed at once, as EIO":         {job: ptr(failed(5)), says: says{"n1": fencedHere, "n2": fencedHere}, cause: engine.Unready, exit: job.ExitCode{Status: 1}, asks: true},
		"failed at once, the first died": {job: ptr(failed(1)), says: says{"n1": silent, "n2": fencedHere}, cause: engine.NodeLost, exit: job.ExitCode{Signal: 9}, asks: true},
		"failed at once":                 {job: ptr(failed(1)), says: says{"n1": word(1), "n2": fencedHere}, cause: engine.Exited, exit: job.ExitCode{Status: 1}, asks: true},
		"never had nodes":                {job: &site.Job{State: site.Cancelled, CancelledBy: "1000", Reason: "no nodes"}, cause: engine.Cancelled, exit: job.ExitCode{Signal: 15}},
		"put back, ended as barred":      {job: &site.Job{State: site.Failed, Exit: job.ExitCode{Status: 117}, Restarts: 1}, cause: engine.NodeLost, exit: job.ExitCode{Signal: 9}},

		"barred, lives":            {job: ptr(failed(117)), says: says{"n1": livesHere, "n2": fencedHere}, asks: true},
		"barred, silent node":      {job: ptr(failed(117)), says: says{"n1": fencedHere}, asks: true},
		"barred, fenced":           {job: ptr(failed(117)), says: says{"n1": fencedHere, "n2": fencedHere}, cause: engine.Unready, exit: job.ExitCode{Status: 1}, asks: true},
		"barred, the first is out": {job: ptr(failed(117)), says: says{"n1": word(3), "n2": fencedHere}, cause: engine.Exited, exit: job.ExitCode{Status: 3}, asks: true},
		"barred, the first failed": {job: ptr(failed(117)), says: says{"n1": 130 + 109, "n2": silent}, cause: engine.Exited, exit: job.ExitCode{Status: 109}, asks: true},
		"barred, silent":           {job: ptr(failed(117)), says: says{"n1": silent, "n2": fencedHere}, cause: engine.NodeLost, exit: job.ExitCode{Signal: 9}, asks: true},
		"no directory":             {job: ptr(failed(118)), says: says{"n1": 118, "n2": 118}, cause: engine.Unready, exit: job.ExitCode{Status: 1}, asks: true},
		"no answer is none":        {job: ptr(failed(117)), says: says{"n1": 0, "n2": 1}, asks: true},

		"cancelled by root, fenced":  {job: &site.Job{State: site.Cancelled, CancelledBy: "0"}, says: says{"n1": fencedHere, "n2": fencedHere}, cause: engine.Unready, exit: job.ExitCode{Status: 1}, asks: true},
		"cancelled by root, lives":   {job: &site.Job{State: site.Cancelled, CancelledBy: "0"}, says: says{"n1": livesHere, "n2": fencedHere}, asks: true},
		"cancelled by root, it died": {job: &site.Job{State: site.Cancelled, CancelledBy: "0"}, says: says{"n1": silent, "n2": fencedHere}, cause: engine.Cancelled, exit: job.ExitCode{Signal: 15}, asks: true},
		"a node failed, and lives":   {job: &site.Job{State: site.NodeFailed}, says: says{"n1": fencedHere, "n2": livesHere}, asks: true},
		"a node failed, both down":   {job: &site.Job{State: site.NodeFailed}, away: []string{"n1", "n2"}, cause: engine.NodeLost, exit: job.ExitCode{Signal: 9}},
		"a node failed, one is down": {job: &site.Job{State: site.NodeFailed}, away: []string{"n1"}, says: says{"n2": fencedHere}, cause: engine.NodeLost, exit: job.ExitCode{Signal: 9}, asks: true},

		"a node began anew":    {job: &site.Job{State: site.NodeFailed}, ran: true, says: says{"n1": fencedHere, "n2": fencedHere}, cause: engine.NodeLost, exit: job.ExitCode{Signal: 9}, asks: true},
		"ran as somebody else": {job: ptr(failed(119)), ran: true, says: says{"n1": fencedHere, "n2": fencedHere}, cause: engine.Unready, exit: job.ExitCode{Status: 1}, asks: true},

		"done, after a crash":             {job: &site.Job{State: site.Completed}, anew: true, says: says{"n1": word(0), "n2": fencedHere}, cause: engine.Exited, asks: true},
		"done, after a crash, never ran":  {job: &site.Job{State: site.Completed}, anew: true, says: says{"n1": fencedHere, "n2": fencedHere}, cause: engine.Unready, exit: job.ExitCode{Status: 1}, asks: true},
		"done, after a crash, lives":      {job: &site.Job{State: site.Completed}, anew: true, says: says{"n1": livesHere}, asks: true},
		"done, after a crash, was killed": {job: &site.Job{State: site.Completed}, anew: true, says: says{"n1": silent, "n2": fencedHere}, cause: engine.NodeLost, exit: job.ExitCode{Signal: 9}, asks: true},
		"failed, after a crash":           {job: ptr(failed(1)), anew: true, says: says{"n1": word(3), "n2": fencedHere}, cause: engine.Exited, exit: job.ExitCode{Status: 3}, asks: true},

		"a probe had its number":     {job: ptr(failed(livesHere)), anew: true, says: says{"n1": silent, "n2": fencedHere}, cause: engine.NodeLost, exit: job.ExitCode{Signal: 9}, asks: true},
		"its own exit, as a probe's": {job: ptr(failed(livesHere)), says: says{"n1": word(livesHere), "n2": fencedHere}, cause: engine.Exited, exit: job.ExitCode{Status: livesHere}, asks: true},
		"one node of two":            {job: &site.Job{State: site.Failed, Exit: job.ExitCode{Status: 3}, Nodes: []string{"n2"}}, says: says{"n1": fencedHere, "n2": fencedHere}, cause: engine.Unready, exit: job.ExitCode{Status: 1}, asks: true},
		"others had its number":      {job: &site.Job{State: site.Failed, Exit: job.ExitCode{Status: 3}, Nodes: []string{"n3"}}, anew: true, says: says{"n1": silent, "n2": fencedHere}, cause: engine.NodeLost, exit: job.ExitCode{Signal: 9}, asks: true},

		"lost, nobody answers": {anew: true, asks: true},
		"lost, lives":          {anew: true, says: says{"n1": livesHere}, asks: true},
		"lost, never began":    {anew: true, says: says{"n1": fencedHere, "n2": fencedHere}, cause: engine.Unready, exit: job.ExitCode{Status: 1}, asks: true},
		"lost, one is silent":  {anew: true, says: says{"n1": fencedHere}, asks: true},
		"lost, done":           {anew: true, says: says{"n1": word(0), "n2": fencedHere}, cause: engine.Exited, asks: true},
		"lost, failed":         {anew: true, says: says{"n1": word(7), "n2": fencedHere}, cause: engine.Exited, exit: job.ExitCode{Status: 7}, asks: true},
		"lost, the lock too":   {anew: true, ran: true, says: says{"n1": fencedHere, "n2": fencedHere}, cause: engine.NodeLost, exit: job.ExitCode{Signal: 9}, asks: true},
		"lost, died":           {anew: true, says: says{"n1": silent, "n2": fencedHere}, cause: engine.NodeLost, exit: job.ExitCode{Signal: 9}, asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &answering{says: tt.says}
			e, _ := blindly(t, s)
			if tt.ran {
				s.with(func() {
					s.jobs[0].State, s.jobs[0].Nodes, s.jobs[0].Started = site.Running, []string{"n1", "n2"}, time.Now()
				})
				until(t, e, func(r engine.Report) bool { return !r.Started.IsZero() })
			}
			s.with(func() {
				for i := range s.nodes {
					s.nodes[i].Down = slices.Contains(tt.away, s.nodes[i].Name)
				}
				if tt.anew {
					s.booted = time.Now()
				}
				if tt.job == nil {
					s.jobs = nil
					return
				}
				j := *tt.job
				j.ID, j.Comment, j.Submitted = s.jobs[0].ID, s.jobs[0].Comment, s.jobs[0].Submitted
				j.Started, j.Ended = time.Now(), time.Now()
				if j.Reason == "" && len(j.Nodes) == 0 {
					j.Nodes = []string{"n1", "n2"}
				}
				s.jobs = []site.Job{j}
			})
			r := until(t, e, func(r engine.Report) bool { return r.Gone || r.Uncertain })
			if tt.cause == "" { // and it stays so, however often they are asked
				s.until(t, func() bool { return len(s.asked) >= 2 })
				if r, _ = e.Inspect(t.Context(), r.Ref); r.Gone || !r.Uncertain {
					t.Errorf("it is over: %+v", r)
				}
			} else {
				r = until(t, e, gone)
				if r.Cause != tt.cause || r.Exit != tt.exit {
					t.Errorf("%s, %s, %q", r.Cause, r.Exit, r.Message)
				}
			}
			s.with(func() {
				if (len(s.asked) > 0) != tt.asks {
					t.Errorf("asked: %q", s.asked)
				}
			})
		})
	}
}

// TestAsksWithPauses: while nodes do not answer, Slurm is asked now and then, however often it
// is polled.
//
// Seen to fail with: a wake-up for each turn (hundreds of questions).
func TestAsksWithPauses(t *testing.T) {
	s := &answering{}
	e, _ := blindly(t, s)
	s.with(func() { s.booted, s.jobs = time.Now(), nil })
	until(t, e, func(r engine.Report) bool { return r.Uncertain })
	var before int
	began, first := time.Now(), e.Polls().Count
	s.with(func() { before = s.searched })
	s.until(t, func() bool { return e.Polls().Count > first+100 })
	s.with(func() {
		if n, most := s.searched-before, int(time.Since(began)/(10*time.Millisecond))+2; n > most {
			t.Errorf("accounting was searched %d times in %s", n, time.Since(began))
		}
	})
}

func ptr[T any](v T) *T { return &v }

func (s *answering) until(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		var now bool
		if s.with(func() { now = ok() }); now {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not come")
		}
	}
}

// TestWhoIsNotAskedAnyMore: a job that waits to ask is ended when nobody wants its answer.
//
// Seen to fail with: no end of it.
func TestWhoIsNotAskedAnyMore(t *testing.T) {
	s := &answering{says: map[string]int{"n1": wrap.ExitLives}}
	e, _ := blindly(t, s)
	s.with(func() { s.booted, s.past, s.jobs = time.Now(), s.jobs, nil })
	until(t, e, func(r engine.Report) bool { return r.Uncertain })
	s.until(t, func() bool { return slices.Contains(s.asked, "n2") })
	s.with(func() { // accounting has it now, of a person's hand
		j := &s.past[0]
		j.State, j.CancelledBy, j.Nodes, j.Started, j.Ended = site.Cancelled, "1000", nil, time.Now(), time.Now()
		s.booted = s.booted.Add(-time.Hour)
	})
	until(t, e, gone)
	s.until(t, func() bool {
		i := slices.Index(s.asked, "n2")
		return slices.Contains(s.cancelled, uint32(1000+i))
	})
}

// TestTwiceOnNodes: a job that was sent twice is followed where it runs.
//
// Seen to fail with: no look for the other one.
func TestTwiceOnNodes(t *testing.T) {
	s := &answering{}
	e, _ := blindly(t, s)
	s.with(func() {
		twin := s.jobs[0]
		twin.ID, twin.State, twin.Nodes, twin.Started = 55, site.Running, []string{"n1", "n2"}, time.Now()
		j := &s.jobs[0]
		j.State, j.Exit, j.Nodes, j.Started, j.Ended = site.Failed, job.ExitCode{Status: wrap.ExitBarred}, twin.Nodes, time.Now(), time.Now()
		s.jobs = append(s.jobs, twin)
	})
	until(t, e, func(r engine.Report) bool { return r.Native == "55" && r.Phase == engine.Running })
}

// TestSentTwiceOnNodes: the answer of one is lost, and another is cancelled while it waits. The
// first may come yet: it is over when the nodes have a fence.
//
// Seen to fail with: an end by Slurm's word for the second.
func TestSentTwiceOnNodes(t *testing.T) {
	s := &answering{}
	s.refuseOnce = fault.New(fault.Unavailable, "no answer")
	e, ref := blindly(t, s)
	s.with(func() {
		s.jobs[0].State, s.jobs[0].CancelledBy, s.jobs[0].Ended = site.Cancelled, "1000", time.Now()
	})
	s.until(t, func() bool { return len(s.asked) == 2 })
	if r, err := e.Inspect(t.Context(), ref); err != nil || r.Gone {
		t.Errorf("it is over before its nodes have answered: %+v, %v", r, err)
	}
	s.with(func() {
		for i := range s.probes {
			s.probes[i].State, s.probes[i].Exit = site.Failed, job.ExitCode{Status: wrap.ExitFenced}
		}
	})
	if r := until(t, e, gone); r.Cause != engine.Cancelled {
		t.Errorf("%+v", r)
	}
}

// TestALaunchThatIsLostOnNodes: what was refused, or was to stop, after an answer was lost ends
// when its nodes have been fenced, and not before.
//
// Seen to fail with: nodes that have not answered taken for fenced.
func TestALaunchThatIsLostOnNodes(t *testing.T) {
	s := &answering{}
	s.refuseOnce = fault.New(fault.Unavailable, "no answer")
	s.nodes = []site.Node{{Name: "n1", Available: true}}
	s.booted = time.Now().Add(-time.Hour)
	e, root := stageWith(t, &s.stage, func(c *slurm.Config) { c.Site, c.Room = s, lockdir.OnNodes("/var/tmp") })
	s.with(func() { s.stage.refuse = fault.New(fault.Invalid, "no such partition") })
	begin(t, e, root)
	s.until(t, func() bool { return len(s.asked) > 0 })
	if r, _ := e.Inspect(t.Context(), engine.Ref{Allocation: 1, Attempt: 1}); r.Gone {
		t.Errorf("it is over before its node has answered: %+v", r)
	}
	s.with(func() { p := &s.probes[0]; p.State, p.Exit = site.Failed, job.ExitCode{Status: wrap.ExitFenced} })
	if r := until(t, e, gone); r.Cause != engine.LaunchFailed {
		t.Errorf("%+v", r)
	}
}

// TestAJobThatOutlivesItsScript: slurmctld, begun anew, calls a job running. Its nodes say whether
// it does, and it runs until they have.
func TestAJobThatOutlivesItsScript(t *testing.T) {
	for name, tt := range map[string]struct {
		says  map[string]int
		cause engine.Cause // empty: it goes on
		exit  job.ExitCode
	}{
		"it lives":         {says: map[string]int{"n1": wrap.ExitLives, "n2": wrap.ExitFenced}},
		"one is silent":    {says: map[string]int{"n1": word(3)}},
		"it has ended":     {says: map[string]int{"n1": word(3), "n2": wrap.ExitFenced}, cause: engine.Exited, exit: job.ExitCode{Status: 3}},
		"it was killed":    {says: map[string]int{"n1": wrap.ExitSilent, "n2": wrap.ExitFenced}, cause: engine.NodeLost, exit: job.ExitCode{Signal: 9}},
		"it never existed": {says: map[string]int{"n1": wrap.ExitFenced, "n2": wrap.ExitFenced}, cause: engine.Unready, exit: job.ExitCode{Status: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &answering{says: tt.says}
			e, _ := blindly(t, s)
			s.with(func() {
				j := &s.jobs[0]
				j.State, j.Nodes, j.Started = site.Running, []string{"n1", "n2"}, time.Now().Add(-2*time.Second)
				s.booted = time.Now().Add(-time.Second)
			})
			s.until(t, func() bool { return len(s.asked) >= 2 })
			if tt.cause == "" {
				r := until(t, e, func(r engine.Report) bool { return r.Phase == engine.Running })
				s.with(func() {
					if r.Gone || r.Uncertain || slices.Contains(s.cancelled, s.jobs[0].ID) {
						t.Errorf("%+v", r)
					}
				})
				return
			}
			if r := until(t, e, gone); r.Cause != tt.cause || r.Exit != tt.exit {
				t.Errorf("%s, %s, %q", r.Cause, r.Exit, r.Message)
			}
			s.until(t, func() bool { return slices.Contains(s.cancelled, s.jobs[0].ID) })
		})
	}
}

// TestDelegatedNeedsASharedDirectory says why.
func TestDelegatedNeedsASharedDirectory(t *testing.T) {
	_, err := slurm.New(slurm.Config{Root: t.TempDir(), Pool: "p", Site: &stage{}, Room: lockdir.OnNodes("/var/tmp")})
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "another node") {
		t.Errorf("%v", err)
	}
}

// TestProbesAreShell: what asks a node is what a shell understands.
func TestProbesAreShell(t *testing.T) {
	g := wrap.Guard{Ref: engine.Ref{Allocation: 1, Attempt: 1}, Dir: "/var/tmp/cox-it's", Token: "T", OnNode: true}
	for _, shell := range []string{"sh", "bash"} {
		for _, text := range [][]byte{g.Ask("COX_ATTEMPT=a"), wrap.Wrap([]byte("#!/bin/sh\n"), &g)} {
			c := exec.Command(shell, "-n")
			c.Stdin = strings.NewReader(string(text))
			if out, err := c.CombinedOutput(); err != nil {
				t.Error(fmt.Sprint(shell, ": ", err, string(out)))
			}
		}
	}
}
