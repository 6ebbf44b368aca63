package slurm_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/slurm"
	"github.com/coxswain-sched/coxswain/engine/slurm/command"
	"github.com/coxswain-sched/coxswain/engine/slurm/lab"
	"github.com/coxswain-sched/coxswain/engine/slurm/room"
	"github.com/coxswain-sched/coxswain/engine/slurm/site"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
)

// ways are the ways in by which storms blow.
var ways = map[string]func(*testing.T, *lab.Lab) way{
	"commands": func(_ *testing.T, l *lab.Lab) way {
		return way{site: func(*testing.T) site.Site { return l.Command() }, room: openHere}
	},
	"rest": func(t *testing.T, l *lab.Lab) way {
		return way{site: func(t *testing.T) site.Site { return byREST(t, l, nil) }, room: openHere, more: []trouble{killed("slurmrestd")}}
	},
	"ssh": overSSH,
}

// way is a way into a cluster, and what may break of it.
type way struct {
	site func(*testing.T) site.Site
	room func(dir string) (room.Room, error)
	more []trouble
}

// TestStorm: for a while jobs are handed over, some are stopped, and meanwhile, at moments
// drawn from SEED, all that can break is broken: slurmctld, slurmdbd, slurmd, slurmrestd and
// the driver are killed, slurmctld hangs, connections over SSH and single commands of theirs
// are cut off, the login node is away. Every attempt ends once: by the exit code of its script,
// as it was stopped, or with Slurm's having lost it; when it is said to be gone nothing of it
// lives. No script runs twice, and in the end Slurm has nothing of ours that we have not, and
// its accounting says of each what we say.
//
// It blows for COX_STORM, or 45 s. SEED=0 draws a seed.
func TestStorm(t *testing.T) {
	t.Parallel()
	for version, c := range clusters {
		for name, in := range ways {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := newStorm(t, lab.Start(t, c))
				s.way = in(t, s.lab)
				s.kinds = append([]trouble{crash, database, node, hang}, s.way.more...)
				s.blow(t)
				s.settle(t)
				agree(t, s.lab)
				s.compare(t)
			})
		}
	}
}

// seconds is how long a storm blows.
func seconds(t *testing.T) time.Duration {
	text := cmp.Or(os.Getenv("COX_STORM"), "45s")
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("COX_STORM=%s: %v", text, err)
	}
	return d
}

// trouble breaks a cluster for some time.
type trouble func(t *testing.T, l *lab.Lab, rnd *rand.Rand, meanwhile func())

func killed(name string) trouble {
	return func(t *testing.T, l *lab.Lab, rnd *rand.Rand, meanwhile func()) {
		l.Kill(t, name)
		meanwhile()
		time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond) // how long it is away
		l.Begin(t, name)
	}
}

var crash, database = killed("slurmctld"), killed("slurmdbd")

// node kills a slurmd; its jobs go on.
func node(t *testing.T, l *lab.Lab, rnd *rand.Rand, meanwhile func()) {
	killed("slurmd."+l.Nodes[rnd.IntN(len(l.Nodes))])(t, l, rnd, meanwhile)
}

// hang has slurmctld answer nobody for a while.
func hang(t *testing.T, l *lab.Lab, rnd *rand.Rand, meanwhile func()) {
	l.Freeze(t, "slurmctld")
	meanwhile()
	time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond) // how long it hangs
	l.Thaw(t, "slurmctld")
}

// overSSH has locks and commands on a login node, and breaks what leads there.
func overSSH(t *testing.T, l *lab.Lab) way {
	login := l.SSH(t)
	t.Cleanup(func() { _ = login.Close() })
	cut := func(what bool) trouble {
		return func(t *testing.T, l *lab.Lab, rnd *rand.Rand, meanwhile func()) {
			for range 1 + rnd.IntN(5) { // so that it is cut off in the middle of something
				l.Cut(t, what)
				time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
			}
			meanwhile()
		}
	}
	away := func(t *testing.T, l *lab.Lab, rnd *rand.Rand, meanwhile func()) {
		l.Kill(t, "sshd")
		l.Cut(t, true)
		meanwhile()
		time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond) // how long the login is away
		l.Begin(t, "sshd")
	}
	return way{
		site: func(t *testing.T) site.Site { return command.New(l.SSH(t)) },
		room: func(dir string) (room.Room, error) { return patient(t, login, dir) },
		more: []trouble{cut(true), cut(false), away},
	}
}

// patient opens a directory of locks, on a connection that may just be cut off.
func patient(t *testing.T, login *command.SSH, dir string) (r room.Room, err error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if r, err = command.OpenRoom(t.Context(), login, dir); err == nil {
			break
		}
	}
	return r, err
}

// storm is what happens to a cluster while jobs are handed over to it.
type storm struct {
	lab   *lab.Lab
	way   way
	kinds []trouble
	rnd   *rand.Rand
	dir   string // where scripts write that they ran
	root  string
	bench *bench
	count int // of the jobs

	mu   sync.Mutex
	e    *slurm.Engine // the one that is open
	left map[engine.Ref]bool
	ends map[int]engine.Report
	over bool // all jobs have been handed over
}

func newStorm(t *testing.T, l *lab.Lab) *storm {
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		if seed = n; seed == 0 {
			seed = rand.Uint64()
		}
	}
	t.Logf("SEED=%d", seed)
	go administrate(t.Context(), l)
	return &storm{
		lab: l, rnd: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), root: t.TempDir(),
		left: map[engine.Ref]bool{}, ends: map[int]engine.Report{},
	}
}

// open opens a driver on what the last one left.
func (s *storm) open(t *testing.T) {
	e := s.bench.open(t, s.root)
	s.mu.Lock()
	s.e = e
	s.mu.Unlock()
}

func (s *storm) engine() *slurm.Engine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.e
}

// blow hands jobs over, and breaks things.
func (s *storm) blow(t *testing.T) {
	s.bench = newBench(func() site.Site { return s.way.site(t) }, s.way.room)
	s.open(t)
	again := func() {
		if s.rnd.IntN(2) == 0 {
			return
		}
		e := s.engine()
		s.bench.closed[e] = true
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		s.open(t)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.follow(t) }()
	t.Cleanup(func() { <-done }) // t.Context is over then
	var stop []engine.Ref
	for end := time.Now().Add(seconds(t)); time.Now().Before(end); {
		for range 1 + s.rnd.IntN(6) {
			s.count++
			l := s.launch(s.count, s.lab.Nodes)
			s.mu.Lock()
			s.left[l.Ref] = true
			s.mu.Unlock()
			if err := s.engine().Launch(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			if s.long(s.count) {
				stop = append(stop, l.Ref)
			}
			time.Sleep(time.Duration(s.rnd.IntN(100)) * time.Millisecond) // not to wait: to spread what happens
		}
		if len(stop) > 0 && s.rnd.IntN(2) == 0 {
			if err := s.engine().Stop(t.Context(), stop[0], engine.Stop{Grace: time.Duration(s.rnd.IntN(3)) * time.Second, Reason: "not wanted"}); err != nil {
				t.Errorf("stop of %s: %v", stop[0], err)
			}
			stop = stop[1:]
		}
		s.kinds[s.rnd.IntN(len(s.kinds))](t, s.lab, s.rnd, again)
		time.Sleep(time.Duration(s.rnd.IntN(1500)) * time.Millisecond) // in which nothing breaks
	}
	for _, ref := range stop {
		if err := s.engine().Stop(t.Context(), ref, engine.Stop{Reason: "not wanted"}); err != nil {
			t.Errorf("stop of %s: %v", ref, err)
		}
	}
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
}

// long reports whether a job runs until it is stopped.
func (s *storm) long(i int) bool { return i%7 == 0 }

// launch is a job that says that it ran, and ends with exit code 3.
func (s *storm) launch(i int, nodes []string) *engine.Launch {
	runs := fmt.Sprintf("sleep %g", s.rnd.Float64()*3)
	if s.long(i) {
		runs = "exec sleep 3600"
	}
	return &engine.Launch{
		Ref: engine.Ref{Allocation: uint64(i), Attempt: 1},
		Job: &job.Job{ID: job.ID(i), Attempt: 1, Spec: &job.Spec{
			Name: fmt.Sprintf("storm-%d", i), WorkDir: s.dir, Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}}},
			Program: job.Program{Kind: job.Batch, ScriptName: "storm.sh"},
		}},
		Script: fmt.Appendf(nil, "#!/bin/sh\necho %d $SLURM_JOB_ID >>%s/ran.%d\n%s\nexit 3\n", i, s.dir, i, runs),
		Env:    []string{"PATH=/usr/bin:/bin"}, Grace: time.Second, Claims: []fleet.Claim{{Node: nodes[i%len(nodes)], Tasks: 1}},
	}
}

// administrate brings nodes back that slurmctld drained because it gave out a number again
// that a job of theirs still had.
func administrate(ctx context.Context, l *lab.Lab) {
	run := func(name string, args ...string) string {
		out, _ := l.Try(ctx, name, args...)
		return out
	}
	for ctx.Err() == nil {
		for line := range strings.Lines(run("sinfo", "-h", "-N", "-o", "%N %T %E")) {
			if f := strings.Fields(line); len(f) > 2 && strings.HasPrefix(f[1], "drain") && strings.Contains(line, "Duplicate jobid") {
				run("scontrol", "update", "nodename="+f[0], "state=resume")
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}
