package slurm_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// awaits waits until something is so.
func awaits(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

// TestAGhost: slurmctld finds a job again that it had lost, and that was reported ended. It
// is ended in Slurm; other drivers' jobs are not.
//
// Seen to fail with: no look for the tag; ending whatever has a tag.
func TestAGhost(t *testing.T) {
	s := &stage{}
	e, ref, _ := play(t, s)
	s.taken(t)
	var lost site.Job
	s.with(func() { lost, s.jobs = s.jobs[0], nil })
	if r := until(t, e, gone); r.Cause != engine.Unready {
		t.Errorf("%+v", r)
	}
	if err := e.Forget(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	other := site.Job{ID: 900, Comment: "cox:ANOTHER:7:1.1", State: site.Running}
	s.with(func() { lost.State, s.jobs = site.Running, []site.Job{other, lost} })
	awaits(t, "the end of the ghost", func() (ok bool) {
		s.with(func() { ok = slices.Contains(s.cancelled, lost.ID) })
		return ok
	})
	s.with(func() {
		if slices.Contains(s.cancelled, other.ID) {
			t.Error("another driver's job was ended")
		}
	})
}

// TestAUserWhoHasLeft: that Slurm does not know one of the users any more keeps nobody from
// looking for the ghosts of the others.
//
// Seen to fail with: the first error being the end of the round.
func TestAUserWhoHasLeft(t *testing.T) {
	s := &stage{}
	e, root := stageWith(t, s, func(c *slurm.Config) { c.Placed, c.Identity.Mode = false, slurm.AsOwner })
	for i, name := range []string{"anna", "bert"} {
		l := another(root, uint64(i+1), 1)
		l.Job.Spec.Owner = job.Owner{User: name, UID: uint32(4000 + i)}
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	awaits(t, "both jobs", func() (ok bool) { s.with(func() { ok = len(s.jobs) == 2 }); return ok })
	var lost []site.Job
	s.with(func() { lost, s.jobs, s.left = s.jobs, nil, "anna" })
	until(t, e, func(r engine.Report) bool { return r.Gone && r.Ref.Allocation == 2 })
	s.with(func() { s.jobs = lost })
	awaits(t, "the end of the ghosts", func() (ok bool) { s.with(func() { ok = len(s.cancelled) > 0 }); return ok })
}

// TestOldLocks are removed once their attempts were forgotten long ago, and no others.
//
// Seen to fail with: no look at the age; at the attempt; at whose they are.
func TestOldLocks(t *testing.T) {
	s := &stage{}
	e, ref, dir := play(t, s)
	lock := s.act(t, time.Now(), "n1")
	old := time.Now().Add(-48 * time.Hour)
	age := func(name string) {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	age(lock)
	foreign := filepath.Join(dir, "1.1-ANOTHERSANOTHER0.0")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	age(foreign)
	there := func(name string) bool { _, err := os.Stat(name); return err == nil }
	s.ends(site.Completed, time.Now().Truncate(time.Second), "n1")
	until(t, e, gone)
	rounds := func() int { var n int; s.with(func() { n = s.listed }); return n }
	pass := func() { // two whole rounds
		from := rounds()
		awaits(t, "two rounds", func() bool { return rounds() > from+2 })
	}
	pass()
	if !there(lock) {
		t.Fatal("the lock of an attempt that is known was removed")
	}
	young := lock + ".begun" // an attempt's files are as old as its youngest
	if err := os.WriteFile(young, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.Forget(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	pass()
	if !there(lock) {
		t.Fatal("a lock was removed at once")
	}
	age(young)
	awaits(t, "the end of an old lock", func() bool { return !there(lock) && !there(young) })
	if !there(foreign) {
		t.Error("another driver's lock was removed")
	}
}
