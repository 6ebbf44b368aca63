package kube_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/enginetest"
	"github.com/coxswain-sched/coxswain/model/fault"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// breaks are what happens to a cluster, and to the driver.
func (s *storm) breaks() map[string]lab.Break {
	all := s.b.l.Breaks(func(node string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.crashed[node] = true
	})
	all["driver"] = func(_ testing.TB, _ *rand.Rand, meanwhile func()) { meanwhile() }
	all["frozen driver"] = func(t testing.TB, rnd *rand.Rand, meanwhile func()) {
		p := s.driver().cmd.Process
		err := p.Signal(syscall.SIGSTOP)
		lab.Pause(rnd, 3*time.Second) // what it had asked for is done, or too late
		if err = errors.Join(err, p.Signal(syscall.SIGCONT)); err != nil {
			t.Error(err)
		}
		meanwhile()
	}
	return all
}

// storm is what happens to a cluster while jobs are handed over to it.
type storm struct {
	b     *bench
	rnd   *rand.Rand
	dir   string // where scripts write that they ran; pods have it as /storm
	root  string // the driver's
	wg    sync.WaitGroup
	tally enginetest.Tally

	mu      sync.Mutex
	d       *far   // the driver that is there
	jobs    []plan // the first has number 1
	stops   []int  // of jobs that wait to be stopped
	crashed map[string]bool
}

// plan is what a storm's job is.
type plan struct {
	kind   kind
	nodes  []string
	sleeps float64 // seconds
}

type kind string

const (
	short   kind = "short"   // ends by itself, with 3
	long    kind = "long"    // runs until it is stopped
	deaf    kind = "deaf"    // does so too, and does not hear SIGTERM
	limited kind = "limited" // runs until its time is over
	never   kind = "never"   // has an image that is nowhere, until it is stopped
)

// TestStorm: for a while jobs are handed over to a driver: on one node, gangs on several with a
// step on all of them, such as end by themselves, are stopped, run out of time, or cannot begin.
// Meanwhile, at moments drawn from SEED, apiserver, etcd, controller-manager, kubelets and
// containerds are killed, the driver's process is killed in the middle of what it does, or told
// to end, and another one begins on what it left; nodes, the apiserver and the driver hang, a
// node loses its power. Every attempt
// ends once: by its script's exit code, as it was stopped, or with its node; when it is said to
// be gone nothing of it lives. No script and no rank runs twice. In the end nothing of ours is
// in the cluster: no pod, no finalizer, no Secret, no Service.
//
// It blows for COX_STORM, or 50 s. SEED=0 draws a seed.
//
// Seen to fail with: a bind that the API server's storage failed taken for one that cannot be
// (an attempt ended as unready); a Forget that was cut off, whose Secret stayed; an end without
// a word of what had failed.
func TestStorm(t *testing.T) { // alone: what it breaks takes long enough
	if os.Getenv("COX_STORM_DRIVER") != "" {
		beFar(t)
		return
	}
	b := newBench(lab.Start(t, lab.Config{Kubelets: 4}))
	s := &storm{b: b, root: t.TempDir(), dir: filepath.Join(t.TempDir(), "ran"), crashed: map[string]bool{}}
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		if seed = n; seed == 0 {
			seed = rand.Uint64()
		}
	}
	t.Logf("SEED=%d", seed)
	s.rnd = rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a storm
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	length, err := time.ParseDuration(cmp.Or(os.Getenv("COX_STORM"), "50s"))
	if err != nil {
		t.Fatal(err)
	}
	s.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.wg.Go(func() { s.follow(ctx, t) })
	s.blow(t, time.Now().Add(length))
	s.settle(t)
	cancel()
	s.wg.Wait()
	s.empty(t)
}

// open begins a driver on what the last one left.
func (s *storm) open(t *testing.T) {
	d := beginFar(t, s.b.l.Kubeconfig(), s.root, s.dir)
	t.Cleanup(d.kill)
	s.mu.Lock()
	s.d = d
	s.mu.Unlock()
}

func (s *storm) driver() *far {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.d
}

// again kills the driver in the middle of what it does, or now and then has it end by itself,
// and begins another.
func (s *storm) again(t *testing.T) {
	if s.rnd.IntN(4) == 0 {
		if err := s.driver().leave(); err != nil {
			t.Error(err)
		}
	} else {
		s.driver().kill()
	}
	s.open(t)
}

// atOnce is how many jobs are there at most.
const atOnce = 12

// blow hands jobs over, and breaks things, until an end.
func (s *storm) blow(t *testing.T, end time.Time) {
	breaks := s.breaks()
	names := slices.Sorted(maps.Keys(breaks))
	count := map[string]int{}
	for time.Now().Before(end) {
		for range 1 + s.rnd.IntN(4) {
			if len(s.tally.Open()) < atOnce {
				s.hand(t)
			}
			lab.Pause(s.rnd, 200*time.Millisecond)
		}
		s.stopOne(t, time.Duration(s.rnd.IntN(3))*time.Second)
		name := names[s.rnd.IntN(len(names))]
		count[name]++
		breaks[name](t, s.rnd, func() {
			if s.rnd.IntN(2) == 0 {
				s.hand(t)
			}
			if s.rnd.IntN(3) == 0 || name == "driver" {
				s.again(t)
				count["driver"]++
			}
			if s.rnd.IntN(2) == 0 {
				s.stopOne(t, 0)
			}
		})
		lab.Pause(s.rnd, 2*time.Second)
	}
	t.Logf("broken: %v", count)
}

// draw draws a job.
func (s *storm) draw(i int) plan {
	p := plan{kind: short, sleeps: s.rnd.Float64() * 4}
	switch {
	case i%7 == 0:
		p.kind = long
	case i%11 == 0:
		p.kind = deaf
	case i%13 == 0:
		p.kind = limited
	case i%17 == 0:
		p.kind = never
	}
	n := 1
	if i%3 == 0 || p.kind != short && s.rnd.IntN(2) == 0 {
		n = 2 + s.rnd.IntN(len(s.b.l.Nodes)-1)
	}
	for _, k := range s.rnd.Perm(len(s.b.l.Nodes))[:n] {
		p.nodes = append(p.nodes, s.b.l.Nodes[k])
	}
	return p
}

// script is what a job does: it says that it ran, as do its ranks, and ends with 3.
func (p *plan) script(i int) string {
	runs := fmt.Sprintf("sleep %.2f", p.sleeps)
	if p.kind != short {
		runs = "sleep 3600"
	}
	out := fmt.Sprintf("#!/bin/sh\necho $SLURM_JOB_NODELIST >>/storm/ran.%d\n", i)
	if p.kind == deaf {
		out += "trap '' TERM\n"
	}
	if len(p.nodes) > 1 {
		runs = fmt.Sprintf("srun sh -c 'echo $SLURMD_NODENAME >>/storm/rank.%d; %s'", i, runs)
	}
	if p.kind != short {
		runs += " & wait; wait"
	}
	return out + runs + "\nexit 3\n"
}

// hand hands one more job over: it is repeated until it is taken.
func (s *storm) hand(t *testing.T) {
	i := len(s.jobs) + 1
	p := s.draw(i)
	s.mu.Lock()
	s.jobs = append(s.jobs, p)
	s.mu.Unlock()
	w := Wish{Allocation: uint64(i), Script: p.script(i), Nodes: p.nodes}
	switch p.kind {
	case limited:
		w.TimeLimit = 2 * time.Second
	case never:
		w.Image = "lab/none:1"
	}
	s.tally.Hand(engine.Ref{Allocation: w.Allocation, Attempt: 1})
	s.wg.Go(func() {
		for t.Context().Err() == nil {
			_, err := s.driver().ask(t.Context(), "Launch", w)
			if err == nil {
				break
			}
			if fault.KindOf(err) != fault.Unavailable {
				t.Errorf("launch of %d: %v", i, err)
				return
			}
			time.Sleep(50 * time.Millisecond) // as a server does; nothing tells that it would answer
		}
		if p.kind == long || p.kind == deaf || p.kind == never {
			s.mu.Lock()
			s.stops = append(s.stops, i)
			s.mu.Unlock()
		}
	})
}

// stopOne stops the first of the jobs that are to be stopped.
func (s *storm) stopOne(t *testing.T, grace time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.stops) == 0 {
		return false
	}
	ref := engine.Ref{Allocation: uint64(s.stops[0]), Attempt: 1}
	s.stops = s.stops[1:]
	if _, err := s.d.ask(t.Context(), "Stop", Ending{ref, engine.Stop{Grace: grace, Reason: "not wanted"}}); err != nil {
		t.Errorf("stop of %s: %v", ref, err)
	}
	return true
}

// follow hears of the ends, from one driver after the other, until the test ends. Of three
// attempts one is forgotten at once, the others in the end.
func (s *storm) follow(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		d := s.driver()
		all, err := d.ask(ctx, "Next", 0)
		if err != nil {
			time.Sleep(5 * time.Millisecond) // it was killed, and another one begins
		}
		for _, r := range all {
			if !r.Gone {
				continue
			}
			s.judge(t, r)
			if r.Ref.Allocation%3 == 0 {
				_, _ = d.ask(ctx, "Forget", r.Ref) // it may have been killed; then the next one says it again
			}
		}
	}
}

// judge looks at the end of an attempt, at the moment in which it is reported.
func (s *storm) judge(t *testing.T, r engine.Report) {
	if s.tally.Known(t, r) {
		return
	}
	i := int(r.Ref.Allocation)
	s.mu.Lock()
	p := s.jobs[i-1]
	crashed := slices.ContainsFunc(p.nodes, func(n string) bool { return s.crashed[n] })
	s.mu.Unlock()
	if n := living(t, r, "", ""); len(n) != 0 {
		t.Errorf("%s is said to be gone, and %d processes of it live: %q", r.Ref, len(n), r.Message)
	}
	times := len(s.lines("ran", i))
	ok := false
	switch {
	case times > 1:
	case crashed && r.Cause == engine.NodeLost:
		ok = true
	case times == 0 && r.Cause == engine.Unready: // what brings the crew was killed with its containerd
		ok = r.Message != ""
		t.Logf("%s, %s on %q: %s", r.Ref, p.kind, p.nodes, r.Message)
	case r.Cause == engine.NodeLost && strings.Contains(r.Message, "ContainerStatusUnknown"):
		ok = true // a kubelet that was killed no longer finds the container, and says that it knows no end of it
		t.Logf("%s, %s on %q: %s", r.Ref, p.kind, p.nodes, r.Message)
	case times == 0 && r.Cause == engine.NodeLost && strings.Contains(r.Message, "StartError"):
		ok = true // … or while it began: it has no word of its own
		t.Logf("%s, %s on %q: %s", r.Ref, p.kind, p.nodes, r.Message)
	case p.kind == short:
		ok = times == 1 && r.Cause == engine.Exited && r.Exit.Status == 3
	case p.kind == limited:
		ok = times == 1 && r.Cause == engine.TimedOut
	case p.kind == never:
		ok = times == 0 && r.Cause == engine.Stopped
	default:
		ok = r.Cause == engine.Stopped
	}
	if !ok {
		t.Errorf("%s, %s on %q, ran %d times and ended as %s, %s, %q", r.Ref, p.kind, p.nodes, times, r.Cause, r.Exit, r.Message)
	}
	ranks := s.lines("rank", i)
	slices.Sort(ranks)
	if n := len(ranks); n != len(slices.Compact(slices.Clone(ranks))) || n > len(p.nodes) {
		t.Errorf("%s: its ranks ran on %q", r.Ref, ranks)
	}
	s.tally.End(r)
}

// lines are those of a file that a job writes.
func (s *storm) lines(name string, i int) []string {
	b, _ := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("%s.%d", name, i)))
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
}

// settle waits for the ends of all.
func (s *storm) settle(t *testing.T) {
	began := time.Now()
	for len(s.tally.Open()) > 0 && time.Since(began) < 8*time.Minute {
		s.stopOne(t, 0)
		time.Sleep(50 * time.Millisecond) // of ends and of what is yet to be stopped no one event tells
	}
	t.Logf("%d jobs, ends: %s, the last %s after the storm", len(s.jobs), &s.tally, time.Since(began).Round(time.Second))
	all, err := s.driver().ask(t.Context(), "List", 0)
	if err != nil {
		t.Error(err)
	}
	for _, ref := range s.tally.Open() {
		var r engine.Report
		if i := slices.IndexFunc(all, func(r engine.Report) bool { return r.Ref == ref }); i >= 0 {
			r = all[i]
		}
		t.Errorf("%s, %s on %q, has not ended: %s, uncertain %t, %q", ref, s.jobs[ref.Allocation-1].kind, s.jobs[ref.Allocation-1].nodes, r.Phase, r.Uncertain, r.Message)
	}
}

// empty forgets all, and waits until nothing of this server is in the cluster.
func (s *storm) empty(t *testing.T) {
	d, server := s.driver(), serverOf(t, s.root)
	all, err := d.ask(t.Context(), "List", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if _, err := d.ask(t.Context(), "Forget", r.Ref); err != nil {
			t.Error(err)
		}
	}
	s.b.l.Emptied(t, "default", "pods,secrets,services", "--selector="+render.LabelServer+"="+server)
}
