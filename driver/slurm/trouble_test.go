package slurm_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/driver/slurm/rest"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestTroubles: what goes wrong at sites, on real clusters. What is reported meanwhile is right
// (an error is never "gone"), says what to do, and nothing is lost.
func TestTroubles(t *testing.T) {
	t.Parallel()
	for version, c := range clusters {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c.State, c.More = 16<<20, "MinJobAge=2\nPartitionName=extra Nodes=ALL"
			s := &scene{lab: lab.Start(t, c), modern: c.Modern}
			again, ended := s.purge(t), s.reserve(t)
			t.Run("full disk", s.fullDisk)
			t.Run("expired token", s.expiredToken)
			t.Run("wrong version", s.wrongVersion)
			t.Run("slow answers", s.slowAnswers)
			t.Run("reservation ended", ended)
			t.Run("purged", again)
			t.Run("partition and node", s.taken)
		})
	}
}

// scene is a cluster on which troubles come.
type scene struct {
	lab    *lab.Lab
	modern bool
	pad    string // behind the scripts
}

// play opens an engine.
func (s *scene) play(t *testing.T, way func() site.Site, options ...string) (e *slurm.Engine, dir string) {
	t.Helper()
	b := newBench(way, openHere)
	b.options = options
	dir = t.TempDir()
	return b.open(t, dir), dir
}

func (s *scene) commands() site.Site { return s.lab.Command() }

// start hands a job over that ends with exit code 3, once there is a file.
func (s *scene) start(t *testing.T, e *slurm.Engine, dir string, i, node int) (ref engine.Ref, end func()) {
	t.Helper()
	ref = engine.Ref{Allocation: uint64(i), Attempt: 1}
	err := e.Launch(t.Context(), &engine.Launch{
		Ref: ref,
		Job: &job.Job{ID: job.ID(i), Attempt: 1, Spec: &job.Spec{
			Name: "trouble", WorkDir: dir, Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}}},
			Program: job.Program{Kind: job.Batch, ScriptName: "trouble.sh"},
		}},
		Script: fmt.Appendf(nil, "#!/bin/sh\necho >>%[1]s/ran.%[2]d\nuntil [ -e %[1]s/end.%[2]d ]; do sleep 0.1; done\nexit 3\n%[3]s", dir, i, s.pad),
		Env:    []string{"PATH=/usr/bin:/bin"}, Grace: time.Second, Claims: []fleet.Claim{{Node: s.lab.Nodes[node], Tasks: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ref, func() {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("end.%d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// wellEnded wants an attempt to end by itself, having run once.
func wellEnded(t *testing.T, e *slurm.Engine, dir string, ref engine.Ref) {
	t.Helper()
	r := until(t, e, func(r engine.Report) bool { return r.Ref == ref && r.Gone })
	ran, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("ran.%d", ref.Allocation)))
	if r.Cause != engine.Exited || r.Exit.Status != 3 || len(ran) != 1 {
		t.Errorf("%s: %s, %s, %q; it ran %d times", ref, r.Cause, r.Exit, r.Message, len(ran))
	}
}

// runs waits until an attempt does.
func runs(t *testing.T, e *slurm.Engine, ref engine.Ref) {
	t.Helper()
	until(t, e, func(r engine.Report) bool { return r.Ref == ref && r.Phase == engine.Running })
}

// waits wants an attempt to wait, for a reason.
func waits(t *testing.T, e *slurm.Engine, ref engine.Ref, why ...string) {
	t.Helper()
	r := until(t, e, func(r engine.Report) bool {
		if r.Ref != ref {
			return false
		}
		for _, w := range why {
			if strings.Contains(r.Message, w) {
				return true
			}
		}
		return r.Gone
	})
	if r.Gone || r.Uncertain || r.Phase != engine.Accepted {
		t.Errorf("%s: %s, gone %t, uncertain %t, %q", ref, r.Phase, r.Gone, r.Uncertain, r.Message)
	}
}

// fullDisk: slurmctld cannot save what it is given. Jobs wait, and are handed over when it can;
// what runs ends as always.
func (s *scene) fullDisk(t *testing.T) {
	for name, way := range map[string]func() site.Site{"commands": s.commands, "rest": func() site.Site { return byREST(t, s.lab, nil) }} {
		t.Run(name, func(t *testing.T) {
			e, dir := s.play(t, way)
			before, end := s.start(t, e, dir, 1, 0)
			runs(t, e, before)
			empty := s.lab.Fill(t)
			s.pad = strings.Repeat("# there is always room for some bytes\n", 8<<10)
			defer func() { s.pad = "" }()
			ref, endIt := s.start(t, e, dir, 2, 1)
			waits(t, e, ref, "StateSaveLocation")
			end()
			wellEnded(t, e, dir, before)
			empty()
			endIt()
			wellEnded(t, e, dir, ref)
		})
	}
}

// expiredToken: nobody renews it for a while.
func (s *scene) expiredToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	renew := func(life int) {
		_, token, _ := strings.Cut(s.lab.Run(t, "scontrol", "token", "username=root", fmt.Sprintf("lifespan=%d", life)), "SLURM_JWT=")
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	renew(15)
	e, dir := s.play(t, func() site.Site {
		w, err := rest.New(rest.Config{URL: s.lab.REST(), Tokens: rest.File(file)})
		if err != nil {
			t.Fatal(err)
		}
		return w
	})
	ref, end := s.start(t, e, dir, 1, 0)
	runs(t, e, ref)
	var err error
	awaits(t, "a token that has run out", func() bool { // slurmrestd may complain of something else before
		_, err = e.Info(t.Context())
		return strings.Contains(fault.Remedy(err), "scontrol token")
	})
	if fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%s: %v", fault.KindOf(err), err)
	}
	late, endLate := s.start(t, e, dir, 2, 0)
	waits(t, e, late, "scontrol token")
	end()
	endLate()
	if r, err := e.Inspect(t.Context(), ref); err != nil || r.Gone || r.Uncertain {
		t.Errorf("%+v, %v", r, err)
	}
	renew(3600)
	wellEnded(t, e, dir, ref)
	wellEnded(t, e, dir, late)
}

// wrongVersion: slurmrestd is another one for a while, which speaks nothing that is known here.
func (s *scene) wrongVersion(t *testing.T) {
	e, dir := s.play(t, func() site.Site { return byREST(t, s.lab, nil) })
	ref, end := s.start(t, e, dir, 1, 0)
	runs(t, e, ref)
	only := "openapi/v0.0.37"
	if s.modern {
		only = "openapi/slurmdbd"
	}
	s.lab.Offer(t, only)
	other, _ := s.play(t, func() site.Site { return byREST(t, s.lab, nil) })
	if _, err := other.Info(t.Context()); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "offers no version") || fault.Remedy(err) == "" {
		t.Errorf("%s: %v; %q", fault.KindOf(err), err, fault.Remedy(err))
	}
	late, endLate := s.start(t, e, dir, 2, 0)
	waits(t, e, late, "not handed over")
	end()
	endLate()
	if r, err := e.Inspect(t.Context(), ref); err != nil || r.Gone || r.Uncertain {
		t.Errorf("%+v, %v", r, err)
	}
	s.lab.Offer(t, "")
	wellEnded(t, e, dir, ref)
	wellEnded(t, e, dir, late)
}

// slow is a way to run commands that takes its time.
type slow struct {
	command.Runner
	by time.Duration
}

func (s *slow) Run(ctx context.Context, c command.Call) (command.Result, error) {
	select {
	case <-time.After(s.by): // what is tried
	case <-ctx.Done():
		return command.Result{}, ctx.Err()
	}
	return s.Runner.Run(ctx, c)
}

// slowAnswers: each takes 10 s (2 s where COX_LONG is not set).
func (s *scene) slowAnswers(t *testing.T) {
	by := 2 * time.Second
	if os.Getenv("COX_LONG") != "" {
		by = 10 * time.Second
	}
	e, dir := s.play(t, func() site.Site { return command.New(&slow{&command.Here{Env: s.lab.Env, Before: s.lab.Inside}, by}) })
	ref, end := s.start(t, e, dir, 1, 0)
	end()
	wellEnded(t, e, dir, ref)
}

// reserve has a job run in a reservation that ends in a minute, and one that waits in it, and
// returns what follows.
func (s *scene) reserve(t *testing.T) func(*testing.T) {
	if os.Getenv("COX_LONG") == "" {
		return func(t *testing.T) { t.Skip("reservations are minutes long: COX_LONG=1") }
	}
	s.lab.Run(t, "scontrol", "create", "reservation", "ReservationName=short", "StartTime=now", "Duration=1", "Users=root", "Nodes="+s.lab.Nodes[2])
	e, dir := s.play(t, s.commands, "--reservation=short")
	in, _ := s.start(t, e, dir, 1, 2)
	runs(t, e, in)
	whole, wholeDir := s.play(t, s.commands, "--reservation=short", "--exclusive")
	out, _ := s.start(t, whole, wholeDir, 2, 2)
	waits(t, whole, out, "Resources", "Priority", "Reservation")
	return func(t *testing.T) {
		r := until(t, e, func(r engine.Report) bool { return r.Ref == in && (r.Gone || r.Uncertain) })
		if r.Cause == engine.Exited || r.Message == "" || !r.Gone {
			t.Errorf("%+v", r)
		}
		t.Logf("ran in it: %s, %s", r.Cause, r.Message)
		waits(t, whole, out, "Reservation")
		late, _ := s.start(t, e, dir, 3, 0)
		if r := until(t, e, func(r engine.Report) bool { return r.Ref == late && r.Gone }); r.Cause != engine.LaunchFailed || !strings.Contains(strings.ToLower(r.Message), "reservation") {
			t.Errorf("%s, %q", r.Cause, r.Message)
		}
		if err := whole.Stop(t.Context(), out, engine.Stop{Reason: "not wanted"}); err != nil {
			t.Fatal(err)
		}
		if r := until(t, whole, func(r engine.Report) bool { return r.Ref == out && r.Gone }); r.Cause != engine.Stopped {
			t.Errorf("%s, %q", r.Cause, r.Message)
		}
	}
}

// taken: a partition and a node are taken out of slurm.conf, with jobs in them that run and
// one that waits.
func (s *scene) taken(t *testing.T) {
	last := len(s.lab.Nodes) - 1
	in, inDir := s.play(t, s.commands, "--partition=extra")
	on, onDir := s.play(t, s.commands)
	runsIn, _ := s.start(t, in, inDir, 1, 0)
	runsOn, _ := s.start(t, on, onDir, 2, last)
	stays, end := s.start(t, on, onDir, 3, 1)
	runs(t, in, runsIn)
	runs(t, on, runsOn)
	runs(t, on, stays)
	s.lab.Run(t, "scontrol", "update", "PartitionName=extra", "State=DOWN")
	waitsIn, _ := s.start(t, in, inDir, 4, 0)
	waits(t, in, waitsIn, "Partition")
	before := s.lab.Reconfigure(t, func(conf string) string {
		return lab.Without(lab.Without(conf, "PartitionName=extra"), "NodeName="+s.lab.Nodes[last]+" ")
	})
	for ref, e := range map[engine.Ref]*slurm.Engine{runsIn: in, waitsIn: in, runsOn: on} {
		r := until(t, e, func(r engine.Report) bool { return r.Ref == ref && (r.Gone || r.Uncertain) }) // uncertain: it is being asked for
		if r.Message == "" || r.Cause == engine.Exited || r.Gone && ref == runsIn && living(t, inDir, ref) > 0 {
			t.Errorf("%+v", r)
		}
	}
	late, _ := s.start(t, in, inDir, 5, 0)
	if r := until(t, in, func(r engine.Report) bool { return r.Ref == late && r.Gone }); r.Cause != engine.LaunchFailed || !strings.Contains(r.Message, "partition") {
		t.Errorf("%s, %q", r.Cause, r.Message)
	}
	end()
	wellEnded(t, on, onDir, stays)
	s.lab.Reconfigure(t, func(string) string { return before })
}

// purge has a job end while the driver is closed, and returns what follows when slurmctld has
// forgotten it.
func (s *scene) purge(t *testing.T) func(*testing.T) {
	b := newBench(s.commands, openHere)
	dir := t.TempDir()
	e := b.open(t, dir)
	ref, end := s.start(t, e, dir, 1, 0)
	runs(t, e, ref)
	b.closed[e] = true
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	end()
	return func(t *testing.T) {
		awaits(t, "that slurmctld forgets the job", func() bool {
			return !strings.Contains(s.lab.Run(t, "squeue", "-h", "-t", "all", "-o", "%k"), ":"+ref.String())
		})
		e := b.open(t, dir)
		wellEnded(t, e, dir, ref)
	}
}
