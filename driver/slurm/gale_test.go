package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// plan is what a storm's job is.
type plan struct {
	pool   *pool
	nodes  []string // that are named; as many where Slurm chooses
	groups int      // 2: it is heterogeneous, its first group has one node
	long   bool     // it runs until it is stopped
	sleeps float64  // seconds, else
}

func refTo(i int) engine.Ref { return engine.Ref{Allocation: uint64(i), Attempt: 1} }

// plan is that of a job, by its number.
func (s *storm) plan(i int) plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[i-1]
}

// draw draws a job: of three one is a gang, of nine one heterogeneous.
func (s *storm) draw(i int) plan {
	p := plan{pool: s.pools[s.rnd.IntN(len(s.pools))], groups: 1, long: i%7 == 0, sleeps: s.rnd.Float64() * 3}
	n := 1
	if i%3 == 0 {
		n = 2 + s.rnd.IntN(len(s.lab.Nodes)-1)
	}
	if i%9 == 0 {
		p.groups = 2
	}
	for _, k := range s.rnd.Perm(len(s.lab.Nodes))[:n] {
		p.nodes = append(p.nodes, s.lab.Nodes[k])
	}
	slices.Sort(p.nodes)
	return p
}

// launch is a job that says that it ran, as do its ranks, and ends with exit code 3.
func (s *storm) launch(i int, p *plan) *engine.Launch {
	runs := fmt.Sprintf("sleep %g", p.sleeps)
	if p.long {
		runs = "exec sleep 3600"
	}
	if len(p.nodes) > 1 && p.groups == 1 { // srun waits for a slurmctld that is away, and gives up when it pleases
		rank := fmt.Sprintf("echo $SLURMD_NODENAME >>%s/rank.%d; exec sleep %g", s.dir, i, map[bool]float64{false: p.sleeps, true: 3600}[p.long])
		runs = fmt.Sprintf("timeout 20 srun sh -c '%s'\n%s", rank, runs)
	}
	l := &engine.Launch{
		Ref: refTo(i),
		Job: &job.Job{ID: job.ID(i), Attempt: 1, Spec: &job.Spec{
			Name: fmt.Sprintf("storm-%d", i), WorkDir: s.dir, Program: job.Program{Kind: job.Batch, ScriptName: "storm.sh"},
		}},
		Script: fmt.Appendf(nil, "#!/bin/sh\necho $SLURM_JOB_ID $SLURM_JOB_NODELIST >>%s/ran.%d\n%s\nexit 3\n", s.dir, i, runs),
		Env:    []string{"PATH=/usr/bin:/bin"}, Grace: time.Second,
	}
	first := len(p.nodes)
	if p.groups == 2 {
		first = 1
	}
	for g, nodes := range [][]string{p.nodes[:first], p.nodes[first:]} {
		if n := len(nodes); n > 0 {
			l.Job.Spec.Groups = append(l.Job.Spec.Groups, job.TaskGroup{Nodes: job.Range{Min: n, Max: n}, Tasks: job.Count{Want: n}})
			if p.pool.bench.delegated {
				l.Claims = append(l.Claims, fleet.Claim{Node: "slurm", Group: g, Tasks: n})
				continue
			}
			for _, node := range nodes {
				l.Claims = append(l.Claims, fleet.Claim{Node: node, Group: g, Tasks: 1})
			}
		}
	}
	return l
}

// lines are those of a file that a job writes.
func (s *storm) lines(name string, i int) []string {
	b, _ := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("%s.%d", name, i)))
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
}

// whole looks at where an attempt's ranks ran: each once, all on its nodes; and at the nodes
// that are said to be its.
func (s *storm) whole(t *testing.T, p *plan, r engine.Report) {
	ranks := s.lines("rank", int(r.Ref.Allocation))
	slices.Sort(ranks)
	if n := len(ranks); n != len(slices.Compact(slices.Clone(ranks))) || n > len(p.nodes) {
		t.Errorf("%s: its ranks ran on %q", r.Ref, ranks)
	}
	var said []string
	for _, n := range r.Nodes {
		said = append(said, n.Node)
	}
	slices.Sort(said)
	for _, n := range ranks {
		if len(said) > 0 && !slices.Contains(said, n) {
			t.Errorf("%s: a rank ran on %s, it is said to have had %q", r.Ref, n, said)
		}
	}
	if !p.pool.bench.delegated && len(said) > 0 && !slices.Equal(said, p.nodes) {
		t.Errorf("%s ran on %q, not on %q", r.Ref, said, p.nodes)
	}
}
