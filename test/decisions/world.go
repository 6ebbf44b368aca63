// Package decisions makes a few hundred small worlds from numbers alone and lets
// the core decide in them, so that the same decisions can be asked of two builds of
// it: see the test, and scripts/arm64.sh, which compares amd64 with arm64.
//
// Nothing of a world is drawn with floating-point numbers, and nothing depends on
// the machine: only the core can make a difference.
package decisions

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// World is one invented site, driven by its seed.
type World struct {
	r       *rand.Rand
	now     sched.Instant
	last    job.ID
	queued  []job.ID
	running []job.ID
	nodes   []fleet.Node
}

// NewWorld returns the world of a seed.
func NewWorld(seed uint64) *World {
	return &World{r: rand.New(rand.NewPCG(seed, 7)), now: sched.Instant(time.Hour)}
}

func (w *World) drawInt(lo, hi int) int { return lo + w.r.IntN(hi-lo+1) }

func (w *World) oneIn(of int) bool { return w.r.IntN(of) == 0 }

// First is the step with which the world begins: its nodes and its rules.
func (w *World) First() (sched.Instant, []sched.Event) {
	var out []sched.Event
	for i := range w.drawInt(2, 24) {
		n := w.drawNode(i)
		w.nodes = append(w.nodes, n)
		out = append(out, sched.NodeSet{Node: n})
	}
	if !w.oneIn(4) {
		out = append(out, sched.PolicySet{Policy: w.drawPolicy()})
	}
	return w.now, out
}

func (w *World) drawNode(i int) fleet.Node {
	n := fleet.Node{
		Name: fmt.Sprintf("n%d", i), State: fleet.Up, Path: []string{fmt.Sprintf("spine%d", i/8), fmt.Sprintf("leaf%d", i/4)},
		Capacity: resource.Vector{CPU: resource.CPUs(16 * w.drawInt(1, 2)), Memory: 64 * resource.GiB},
	}
	kind := []string{"h100", "a100"}[i%2]
	for d := range 4 * w.drawInt(0, 2) {
		n.Devices = append(n.Devices, fleet.Device{Index: d, Kind: "gpu", Type: kind, NUMA: d / 4, Memory: 80 * resource.GiB})
	}
	return n
}

var (
	users    = []string{"anna", "ben", "cleo", "dora"}
	accounts = []string{"physics", "nlp", "vision"}
	kinds    = []string{"", "normal", "urgent"}
	parts    = []string{"", "gpu", "long"}
)

// drawPolicy draws rules: weights, half-lives, shares, limits, tiers.
func (w *World) drawPolicy() *account.Policy {
	p := &account.Policy{
		Priority: account.Weights{
			Age: uint32(w.drawInt(0, 2000)), FairShare: uint32(w.drawInt(0, 20000)), JobSize: uint32(w.drawInt(0, 500)),
			QOS: uint32(w.drawInt(0, 3000)), Partition: uint32(w.drawInt(0, 1000)), MaxAge: account.Duration(time.Duration(w.drawInt(1, 48)) * time.Hour), FavorSmall: w.oneIn(2),
		},
		FairShare: account.FairShare{HalfLife: account.Duration(time.Duration(w.drawInt(1, 72)) * time.Hour), Period: account.Duration(time.Minute)},
		Backfill:  account.Backfill{Reservations: w.drawInt(0, 3)},
	}
	for i, name := range accounts {
		a := account.Account{Name: name, Shares: account.Shares(w.drawInt(1, 9))}
		if i == 2 && w.oneIn(2) {
			a.Parent = accounts[0]
		}
		for _, u := range users {
			a.Users = append(a.Users, account.User{Name: u, Shares: account.Shares(w.drawInt(1, 5))})
		}
		if w.oneIn(2) {
			a.Limits.Group = account.TRES{"cpu": resource.CPUs(w.drawInt(16, 200))}
		}
		if w.oneIn(3) {
			jobs := int64(w.drawInt(1, 6))
			a.Limits.GroupJobs = &jobs
		}
		p.Accounts = append(p.Accounts, a)
	}
	for i, name := range kinds[1:] {
		p.QOS = append(p.QOS, account.QOS{Name: name, Priority: uint32(i * w.drawInt(1, 100))})
	}
	for _, name := range parts[1:] {
		p.Partitions = append(p.Partitions, account.Partition{Name: name, Tier: int32(w.drawInt(1, 2)), Priority: uint32(w.drawInt(1, 100))})
	}
	return p
}

// Step is what happens next.
func (w *World) Step() (sched.Instant, []sched.Event) {
	w.now += sched.Instant(time.Duration(w.drawInt(0, 2000)) * time.Second)
	var out []sched.Event
	for range w.drawInt(0, 3) {
		w.last++
		out = append(out, sched.Submitted{Job: w.last, Spec: w.drawSpec(), Priority: int64(w.drawInt(0, 2) * 100), At: w.now})
		w.queued = append(w.queued, w.last)
	}
	for range min(w.drawInt(0, 2), len(w.running)) {
		i := w.r.IntN(len(w.running))
		out = append(out, sched.Released{Job: w.running[i]})
		w.running = slices.Delete(w.running, i, i+1)
	}
	switch w.r.IntN(20) {
	case 0:
		if len(w.queued) > 0 {
			i := w.r.IntN(len(w.queued))
			out = append(out, sched.Withdrawn{Job: w.queued[i]})
			w.queued = slices.Delete(w.queued, i, i+1)
		}
	case 1:
		n := w.nodes[w.r.IntN(len(w.nodes))]
		n.State = []fleet.NodeState{fleet.Up, fleet.Draining}[w.r.IntN(2)]
		out = append(out, sched.NodeSet{Node: n})
	case 2:
		if len(w.running) > 0 {
			out = append(out, sched.Extended{Job: w.running[w.r.IntN(len(w.running))], Until: w.now + sched.Instant(time.Hour)})
		}
	}
	return w.now, out
}

func (w *World) drawSpec() *job.Spec {
	s := &job.Spec{
		Owner: job.Owner{User: users[w.r.IntN(len(users))]}, Account: accounts[w.r.IntN(len(accounts))],
		QOS: kinds[w.r.IntN(len(kinds))], Requeue: w.oneIn(2), Groups: []job.TaskGroup{{}},
	}
	if p := parts[w.r.IntN(len(parts))]; p != "" {
		s.Partitions = []string{p}
	}
	if !w.oneIn(8) {
		s.TimeLimit = time.Duration(w.drawInt(1, 300)) * time.Minute
	}
	g := &s.Groups[0]
	nodes := w.drawInt(1, 6)
	g.Nodes, g.Tasks.Want, g.TasksPerNode = job.Range{Min: nodes, Max: nodes}, nodes, 1
	g.PerTask.CPU = resource.CPUs(w.drawInt(1, 16))
	if w.oneIn(2) {
		g.PerNode.Devices = []resource.DeviceRequest{{Count: w.drawInt(1, 8), Type: []string{"", "", "h100", "a100"}[w.r.IntN(4)]}}
	}
	return s
}

// Heard follows what the core decided.
func (w *World) Heard(decisions []sched.Decision) {
	for _, d := range decisions {
		if d, ok := d.(sched.Start); ok {
			w.queued = slices.DeleteFunc(w.queued, func(id job.ID) bool { return id == d.Job })
			w.running = append(w.running, d.Job)
		}
	}
}
