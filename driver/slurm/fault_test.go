package slurm_test

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
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

// nodes has the locks on the nodes.
func nodes(_ *testing.T, l *lab.Lab) way {
	return way{
		site: func(*testing.T) site.Site { return l.Command() },
		room: func(string) (lockdir.Directory, error) { return lockdir.OnNodes(l.Disk("own")), nil },
		mark: l.Disk("own") + "/cox-",
	}
}

// way is a way into a cluster, and what may break of it.
type way struct {
	site func(*testing.T) site.Site
	room func(dir string) (lockdir.Directory, error)
	more []trouble
	mark string // how the name of the locks begins if these are on the nodes, of a placed pool alone
}

// TestStorm: for a while jobs are handed over to two pools of one cluster, one whose nodes are
// named and one whose nodes Slurm chooses: on one node, gangs on several with a step on all of
// them, heterogeneous ones. Some are stopped, and meanwhile, at moments drawn from SEED, all
// that can break is broken: slurmctld, slurmdbd, slurmd, slurmrestd and the drivers are killed,
// slurmctld hangs, connections over SSH and single commands of theirs are cut off, the login
// node is away. Every attempt ends once: by the exit code of its script, as it was stopped, or
// with Slurm's having lost it; when it is said to be gone nothing of it lives on any node. No
// script and no rank runs twice, what is placed runs on the nodes that were named, and in the
// end Slurm has nothing of ours that we have not, and its accounting says of each what we say.
//
// It blows for COX_STORM, or 50 s. SEED=0 draws a seed.
func TestStorm(t *testing.T) {
	t.Parallel()
	all := ways
	if os.Getenv("COX_LONG") != "" || os.Getenv("COX_STORM") != "" { // else TestLocksOnNodes has some of it
		all = maps.Clone(ways)
		all["nodes"] = nodes
	}
	for version, c := range clusters {
		for name, in := range all {
			c.Apart = name == "nodes"
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
	text := cmp.Or(os.Getenv("COX_STORM"), "50s")
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
		room: func(dir string) (lockdir.Directory, error) { // as servers do: the login may just be away
			return lockdir.OpenLater(dir, func(ctx context.Context) (lockdir.Directory, error) { return command.OpenRoom(ctx, login, dir) }), nil
		},
		more: []trouble{cut(true), cut(false), away},
	}
}

// storm is what happens to a cluster while jobs are handed over to it.
type storm struct {
	lab   *lab.Lab
	way   way
	kinds []trouble
	rnd   *rand.Rand
	dir   string // where scripts write that they ran
	pools []*pool
	jobs  []plan // the first has number 1

	mu   sync.Mutex
	left map[engine.Ref]bool
	ends map[int]engine.Report
}

// pool is a driver's, one that is closed and opened again.
type pool struct {
	bench *bench
	root  string

	mu sync.Mutex
	e  *slurm.Engine // the one that is open
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
		lab: l, rnd: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), left: map[engine.Ref]bool{}, ends: map[int]engine.Report{},
	}
}

// open opens a driver on what the last one left.
func (p *pool) open(t *testing.T) {
	e := p.bench.open(t, p.root)
	p.mu.Lock()
	p.e = e
	p.mu.Unlock()
}

func (p *pool) engine() *slurm.Engine {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.e
}

// again closes the driver in the middle of what it does, and opens another.
func (p *pool) again(t *testing.T) {
	e := p.engine()
	p.bench.closed[e] = true
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	p.open(t)
}

// blow hands jobs over, and breaks things.
func (s *storm) blow(t *testing.T) {
	for _, delegated := range []bool{false, true} {
		if delegated && s.way.mark != "" {
			continue
		}
		p := &pool{bench: newBench(func() site.Site { return s.way.site(t) }, s.way.room), root: t.TempDir()}
		p.bench.delegated = delegated
		p.open(t)
		s.pools = append(s.pools, p)
		done := make(chan struct{})
		go func() { defer close(done); s.follow(t, p) }()
		t.Cleanup(func() { <-done }) // t.Context is over then
	}
	again := func() {
		for _, p := range s.pools {
			if s.rnd.IntN(2) == 0 {
				p.again(t)
			}
		}
	}
	var stop []int
	for end := time.Now().Add(seconds(t)); time.Now().Before(end); {
		for range 1 + s.rnd.IntN(6) {
			if i := s.hand(t); s.plan(i).long {
				stop = append(stop, i)
			}
			time.Sleep(time.Duration(s.rnd.IntN(100)) * time.Millisecond) // not to wait: to spread what happens
		}
		if len(stop) > 0 && s.rnd.IntN(2) == 0 {
			s.stop(t, stop[0], time.Duration(s.rnd.IntN(3))*time.Second)
			stop = stop[1:]
		}
		s.kinds[s.rnd.IntN(len(s.kinds))](t, s.lab, s.rnd, again)
		time.Sleep(time.Duration(s.rnd.IntN(1500)) * time.Millisecond) // in which nothing breaks
	}
	for _, i := range stop {
		s.stop(t, i, 0)
	}
}

// hand hands one more job over, and returns its number.
func (s *storm) hand(t *testing.T) int {
	s.mu.Lock()
	i := len(s.jobs) + 1
	p := s.draw(i)
	s.jobs = append(s.jobs, p)
	s.left[refTo(i)] = true
	s.mu.Unlock()
	if err := p.pool.engine().Launch(t.Context(), s.launch(i, &p)); err != nil {
		t.Fatal(err)
	}
	return i
}

func (s *storm) stop(t *testing.T, i int, grace time.Duration) {
	if err := s.plan(i).pool.engine().Stop(t.Context(), refTo(i), engine.Stop{Grace: grace, Reason: "not wanted"}); err != nil {
		t.Errorf("stop of %s: %v", refTo(i), err)
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
