package slurm_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// stage is a cluster of which a test says what it answers.
type stage struct {
	mu         sync.Mutex
	next       uint32
	jobs       []site.Job
	past       []site.Job
	submitted  int
	cancelled  []uint32
	deaf       int // so many submissions are taken and not answered
	refuse     error
	refuseOnce error // of the next submission
	nodes      []site.Node
	script     string          // of the last submission
	sent       site.Submission // the last one
	age        time.Duration   // of slurmctld; 0: an hour
	listed     int             // how often a user's jobs were listed
	stock      *fleet.Inventory
	everyone   []site.Held
	stocked    int    // how often the stock was asked for
	left       string // a user whom the cluster does not know any more
}

func (s *stage) with(f func()) { s.mu.Lock(); defer s.mu.Unlock(); f() }

func (s *stage) Cluster(context.Context) (site.Cluster, error) {
	return site.Cluster{Name: "stage", Version: "22.05.8", Booted: time.Now().Add(-cmp.Or(s.age, time.Hour)), MinAge: 5 * time.Minute, Accounts: true}, nil
}

func (s *stage) Submit(_ context.Context, j *site.Submission) (id uint32, err error) {
	s.with(func() {
		s.submitted++
		if err = cmp.Or(s.refuseOnce, s.refuse); err != nil {
			s.refuseOnce = nil
			return
		}
		s.next++
		s.script, s.sent = string(j.Script), *j
		id = 100 + s.next
		i := slices.IndexFunc(j.Options, func(o string) bool { return strings.HasPrefix(o, "--comment=") })
		s.jobs = append(s.jobs, site.Job{ID: id, State: site.Pending, Comment: strings.TrimPrefix(j.Options[i], "--comment="), Submitted: time.Now().Truncate(time.Second)})
		if s.deaf > 0 {
			s.deaf--
			id, err = 0, fault.New(fault.Unavailable, "no answer")
		}
	})
	return id, err
}

func (s *stage) Jobs(_ context.Context, ids []uint32) (out []site.Job, err error) {
	s.with(func() {
		for _, j := range s.jobs {
			if slices.Contains(ids, j.ID) {
				out = append(out, j)
			}
		}
	})
	return out, nil
}

func (s *stage) Of(_ context.Context, user string) (out []site.Job, err error) {
	s.with(func() {
		if s.left != "" && user == s.left {
			err = fault.New(fault.Invalid, "squeue: Invalid user: %s", user)
			return
		}
		out = slices.Clone(s.jobs)
		s.listed++
	})
	return out, err
}

func (s *stage) Past(_ context.Context, ids []uint32) (out []site.Job, err error) {
	s.with(func() {
		for _, j := range s.past {
			if slices.Contains(ids, j.ID) {
				out = append(out, j)
			}
		}
	})
	return out, nil
}

func (s *stage) PastOf(context.Context, string, time.Time) ([]site.Job, error) { return nil, nil }

func (s *stage) End(_ context.Context, id uint32) error {
	s.with(func() { s.cancelled = append(s.cancelled, id) })
	return nil
}

func (s *stage) Kill(ctx context.Context, id uint32) error             { return s.End(ctx, id) }
func (s *stage) Signal(context.Context, uint32, int, site.Scope) error { return nil }
func (s *stage) Update(_ context.Context, id uint32, c site.Change) error {
	s.with(func() {
		for i := range s.jobs {
			if j := &s.jobs[i]; j.ID == id {
				j.Held = (j.Held || c.Hold) && !c.Release
				if c.Comment != nil {
					j.Comment = *c.Comment
				}
			}
		}
	})
	return nil
}
func (s *stage) Suspend(context.Context, uint32, bool) error { return nil }
func (s *stage) Nodes(context.Context) ([]site.Node, error) {
	if s.nodes != nil {
		return s.nodes, nil
	}
	return []site.Node{{Name: "n1", CPUs: 8, Available: true}}, nil
}

func (s *stage) Stock(context.Context) (inv *fleet.Inventory, err error) {
	s.with(func() {
		s.stocked++
		if s.stock == nil {
			err = fault.New(fault.Unavailable, "no answer")
			return
		}
		c := *s.stock
		c.Taken, inv = time.Now(), &c
	})
	return inv, err
}

func (s *stage) Everyone(context.Context) (out []site.Held, err error) {
	s.with(func() { out = slices.Clone(s.everyone) })
	return out, nil
}
func (s *stage) Close() error { return nil }

// stageWith opens an engine on a stage.
func stageWith(t *testing.T, s *stage, set func(*slurm.Config)) (e *slurm.Engine, root string) {
	t.Helper()
	root = t.TempDir()
	locks, err := lockdir.Open(filepath.Join(root, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	short := 5 * time.Millisecond
	c := slurm.Config{
		Root: root, Pool: "p", Site: s, Room: locks, Placed: true, Settle: 50 * time.Millisecond, Shortest: short, Longest: short, Hints: short,
		Tidy: short, Sweep: time.Nanosecond, KeepLocks: time.Hour,
	}
	set(&c)
	if e, err = slurm.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, root
}

// play opens an engine on a stage and launches one attempt.
func play(t *testing.T, s *stage) (*slurm.Engine, engine.Ref, string) {
	t.Helper()
	e, root := stageWith(t, s, func(*slurm.Config) {})
	return e, begin(t, e, root), filepath.Join(root, "locks")
}

// begin launches one attempt.
func begin(t *testing.T, e *slurm.Engine, root string) engine.Ref {
	t.Helper()
	ref := engine.Ref{Allocation: 1, Attempt: 1}
	err := e.Launch(t.Context(), &engine.Launch{
		Ref: ref, Job: &job.Job{ID: 7, Spec: &job.Spec{WorkDir: root, Groups: make([]job.TaskGroup, 1), Program: job.Program{Kind: job.Batch}}},
		Script: []byte("#!/bin/sh\n"), Claims: []fleet.Claim{{Node: "n1", Tasks: 1, Take: resource.Vector{CPU: resource.OneCPU}, Devices: []fleet.DeviceClaim{{Index: 3}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// until waits for a report.
func until(t *testing.T, e *slurm.Engine, want func(engine.Report) bool) engine.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var last engine.Report
	enough := errors.New("enough")
	err := e.Watch(ctx, "", func(ev engine.Event) error {
		if last = ev.Report; want(last) {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatalf("%v; the last report is %+v", err, last)
	}
	return last
}

// taken waits until slurmctld has the job.
func (s *stage) taken(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		var has bool
		if s.with(func() { has = len(s.jobs) == 1 }); has {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was submitted")
		}
	}
}

func gone(r engine.Report) bool { return r.Gone }

// TestAnAnswerThatIsLost: the job is found by its tag, and not sent again.
//
// Seen to fail with: no look for the tag.
func TestAnAnswerThatIsLost(t *testing.T) {
	s := &stage{deaf: 1}
	e, _, _ := play(t, s)
	s.taken(t)
	s.with(func() { s.jobs[0].State, s.jobs[0].Reason = site.Pending, "Priority" })
	until(t, e, func(r engine.Report) bool { return r.Message == "Priority" })
	s.with(func() {
		if s.submitted != 1 {
			t.Errorf("submitted %d times", s.submitted)
		}
	})
}

// TestWhyItIsNotHandedOver: a cluster that does not take jobs now is asked again, and says
// meanwhile what has to be done.
//
// Seen to fail with: the reason in the log alone; a reason that stays.
func TestWhyItIsNotHandedOver(t *testing.T) {
	s := &stage{refuse: fault.New(fault.Unavailable, "no space").Advise("make room")}
	e, _, _ := play(t, s)
	r := until(t, e, func(r engine.Report) bool { return r.Message != "" })
	if r.Phase != engine.Accepted || r.Gone || !strings.Contains(r.Message, "no space; make room") {
		t.Errorf("%+v", r)
	}
	s.with(func() { s.refuse = nil })
	until(t, e, func(r engine.Report) bool { return r.Message == "" && r.Phase == engine.Accepted })
	s.taken(t)
}

// TestANumberThatIsGivenOutAgain: Slurm loses the job before it began and gives its number
// to another. Ours ends and never begins; the other is left alone.
//
// Seen to fail with: a job found by its number alone.
func TestANumberThatIsGivenOutAgain(t *testing.T) {
	s := &stage{}
	e, ref, dir := play(t, s)
	s.taken(t)
	s.with(func() { s.jobs[0].Comment, s.jobs[0].State = "cox:another:9:9.1", site.Running })
	if r := until(t, e, gone); r.Cause != engine.Unready || len(r.Tasks) != 0 {
		t.Errorf("%+v", r)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, ref.String()+"-*.0")); len(found) != 1 {
		t.Errorf("no fence: %q", found)
	} else if b, _ := os.ReadFile(found[0]); string(b) != "fenced\n" {
		t.Errorf("%q", b)
	}
	s.with(func() {
		if len(s.cancelled) != 0 {
			t.Errorf("cancelled %d", s.cancelled)
		}
	})
}

// TestCompletedWithoutARun: slurmctld calls a job completed that slurmd could not begin.
//
// Seen to fail with: no look at the lock.
func TestCompletedWithoutARun(t *testing.T) {
	s := &stage{}
	e, _, _ := play(t, s)
	s.taken(t)
	s.with(func() {
		j := &s.jobs[0]
		j.State, j.Nodes, j.Started, j.Ended = site.Completed, []string{"n1"}, time.Now(), time.Now()
	})
	if r := until(t, e, gone); r.Cause != engine.Unready || r.Exit.OK() || !strings.Contains(r.Message, "n1") {
		t.Errorf("%+v", r)
	}
}

// TestRefusals: what slurmctld refuses where it places jobs itself is refused for good; for how
// many jobs there are it is not ready, wherever nodes are chosen: some will have ended.
//
// Seen to fail with: QOSGrpSubmitJobsLimit a refusal; the number of slurmrestd one; a placed job's limit a failed launch.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		said   string
		placed bool
		want   engine.Cause
		kind   fault.Kind // 0: Invalid
	}{
		{"Job violates accounting/QOS policy (job submit limit, user's size and/or time limits) (Slurm's error 2050)", false, engine.Unready, fault.Exhausted},
		{"sbatch: invalid partition specified: nix", false, engine.Refused, 0},
		{"sbatch: invalid partition specified: nix", true, engine.LaunchFailed, 0},
		{"sbatch: AssocMaxSubmitJobLimit; Batch job submission failed", false, engine.Unready, 0},
		{"sbatch: QOSMaxSubmitJobPerUserLimit; Batch job submission failed", true, engine.Unready, 0},
		{"sbatch: QOSGrpSubmitJobsLimit; Batch job submission failed", false, engine.Unready, 0},
	} {
		s := &stage{refuse: fault.New(cmp.Or(c.kind, fault.Invalid), "%s", c.said)}
		e, root := stageWith(t, s, func(f *slurm.Config) { f.Placed = c.placed })
		begin(t, e, root)
		r := until(t, e, gone)
		if r.Cause != c.want || r.Exit.OK() || !strings.Contains(r.Message, c.said) || (c.want == engine.Refused) != strings.Contains(r.Message, "submit it again") {
			t.Errorf("%s, placed %t: %+v", c.said, c.placed, r)
		}
		s.with(func() {
			if s.submitted != 1 {
				t.Errorf("%s: submitted %d times", c.said, s.submitted)
			}
		})
	}
}

// TestARefusal of slurmctld's is the end, and says what Slurm said.
func TestARefusal(t *testing.T) {
	s := &stage{refuse: fault.New(fault.Invalid, "sbatch: invalid partition specified: nix")}
	e, _, _ := play(t, s)
	if r := until(t, e, gone); r.Cause != engine.LaunchFailed || !strings.Contains(r.Message, "nix") {
		t.Errorf("%+v", r)
	}
}

// TestNodesOfAJobThatCompletes: squeue has only those of its nodes then that are not free again.
//
// Seen to fail with: whatever it has.
func TestNodesOfAJobThatCompletes(t *testing.T) {
	s := &stage{}
	e, ref, _ := play(t, s)
	s.taken(t)
	set := func(state site.State, completing bool, nodes ...string) {
		s.with(func() {
			j := &s.jobs[0]
			j.State, j.Completing, j.Nodes, j.Started = state, completing, nodes, time.Now()
		})
	}
	set(site.Running, false, "n1", "n2")
	until(t, e, func(r engine.Report) bool { return len(r.Nodes) == 2 })
	set(site.Completed, true, "n2")
	first := e.Polls().Count
	until(t, e, func(r engine.Report) bool { return r.Phase == engine.Ending })
	for deadline := time.Now().Add(2 * time.Minute); e.Polls().Count < first+3 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if r, err := e.Inspect(t.Context(), ref); err != nil || len(r.Nodes) != 2 {
		t.Errorf("%+v, %v", r.Nodes, err)
	}
}
