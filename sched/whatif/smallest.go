package whatif

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// Smaller is a change of a waiting job's request with which it would start now.
type Smaller struct {
	Option string // of sbatch, without dashes: "nodes", "gpus-per-node", "time", "partition", "constraint", "exclusive"
	Value  string // what to give it; empty: leave it out
	Of     string // what it is now
}

// trial asks whether the job starts at once if it asks for something else.
type trial struct {
	w     *sched.Waiting
	asks  func(s *job.Spec) bool
	types []string // of devices, in order
	parts []string // partitions, in order
	out   []Smaller
}

// Adviser answers for a snapshot who holds what jobs wait for and which change would
// start them, without a look at the queue for each. It is not safe for concurrent use.
type Adviser struct {
	s            *sched.Snapshot
	now          sched.Instant
	core         *sched.Core
	types, parts []string
	standing     map[job.ID]int
}

// NewAdviser loads a snapshot that Sort has put in order, and that is not written to
// any longer.
func NewAdviser(s *sched.Snapshot, now sched.Instant) *Adviser {
	a := &Adviser{s: s, now: max(now, s.At), core: sched.Load(s)}
	a.standing = a.core.Standing()
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for _, x := range n.Devices {
			if !slices.Contains(a.types, x.Type) {
				a.types = append(a.types, x.Type)
			}
		}
		for _, p := range n.Parts {
			if !slices.Contains(a.parts, p) {
				a.parts = append(a.parts, p)
			}
		}
	}
	slices.Sort(a.types)
	slices.Sort(a.parts)
	return a
}

// Ahead is how many jobs were before a waiting one; false: it did not wait, or might
// not be considered.
func (a *Adviser) Ahead(id job.ID) (int, bool) {
	n, ok := a.standing[id]
	return n, ok
}

// Blockers lists the running jobs that have what a waiting one needs (sched.Core.Blockers).
func (a *Adviser) Blockers(id job.ID) []sched.Blocker { return a.core.Blockers(id) }

// Smallest lists changes of one kind each, the largest request of each kind that
// would surely start now (sched.Core.DryRun), that is the smallest change. A job that
// is held, or that would start now anyway, has none.
func (a *Adviser) Smallest(id job.ID) []Smaller {
	w := a.waitingJob(id)
	if w == nil {
		return nil
	}
	return a.trySmaller(w, func(spec *job.Spec) bool { return a.core.DryRun(a.now, id, spec) })
}

// SmallestByPasses is the same by another way, which takes as long as the queue is: a
// whole pass of a core that is loaded anew for each try.
func (a *Adviser) SmallestByPasses(id job.ID) []Smaller {
	w := a.waitingJob(id)
	if w == nil {
		return nil
	}
	return a.trySmaller(w, func(spec *job.Spec) bool { return a.Passes(id, spec) })
}

// Passes reports whether a job would start in a whole pass if it asked for what spec says.
func (a *Adviser) Passes(id job.ID, spec *job.Spec) bool {
	next := a.waitingJob(id).Submitted
	next.Spec = spec
	for _, d := range sched.Load(a.s).Step(a.now, next) {
		if d, ok := d.(sched.Start); ok && d.Job == id {
			return true
		}
	}
	return false
}

// waitingJob finds a job that a change of its request could start.
func (a *Adviser) waitingJob(id job.ID) *sched.Waiting {
	i, ok := slices.BinarySearchFunc(a.s.Queue, id, func(w sched.Waiting, id job.ID) int { return cmp.Compare(w.Job, id) })
	if !ok || a.s.Queue[i].Gate != nil || len(a.s.Queue[i].Spec.Groups) != 1 {
		return nil
	}
	return &a.s.Queue[i]
}

func (a *Adviser) trySmaller(w *sched.Waiting, asks func(spec *job.Spec) bool) []Smaller {
	t := &trial{w: w, asks: asks, types: a.types, parts: a.parts}
	for _, try := range []func(*trial){(*trial).tryNodes, (*trial).tryDevices, (*trial).tryLimit, (*trial).tryKinds, (*trial).tryPartitions, (*trial).tryLoosened} {
		try(t)
	}
	return t.out
}

// startsWith reports whether the job would start now if change were made to what it asks for.
func (t *trial) startsWith(change func(s *job.Spec, g *job.TaskGroup)) bool {
	spec := *t.w.Spec
	spec.Groups = slices.Clone(spec.Groups)
	change(&spec, &spec.Groups[0])
	return t.asks(&spec)
}

func (t *trial) addFound(option, value, of string) {
	t.out = append(t.out, Smaller{Option: option, Value: value, Of: of})
}

// largestWith is the largest number below n with which the job starts, 0: none.
func (t *trial) largestWith(n int, change func(k int) func(*job.Spec, *job.TaskGroup)) int {
	if n < 2 || !t.startsWith(change(1)) {
		return 0
	}
	return 1 + sort.Search(n-2, func(i int) bool { return !t.startsWith(change(i + 2)) })
}

func (t *trial) tryNodes() {
	g := &t.w.Spec.Groups[0]
	n := g.Nodes.Min
	if k := t.largestWith(n, func(k int) func(*job.Spec, *job.TaskGroup) { return nodesOf(n, k) }); k > 0 {
		t.addFound("nodes", strconv.Itoa(k), strconv.Itoa(n))
	}
}

// nodesOf asks for k nodes instead of n, with as many tasks on each.
func nodesOf(n, k int) func(*job.Spec, *job.TaskGroup) {
	return func(_ *job.Spec, g *job.TaskGroup) {
		g.Nodes = job.Range{Min: k, Max: k}
		scale := func(tasks int) int { return (tasks*k + n - 1) / n }
		g.Tasks = job.Count{Min: scale(g.Tasks.Min), Want: scale(g.Tasks.Want)}
	}
}

func (t *trial) tryDevices() {
	d := t.w.Spec.Groups[0].PerNode.Devices
	if len(d) != 1 {
		return
	}
	k := t.largestWith(d[0].Count, func(k int) func(*job.Spec, *job.TaskGroup) {
		return func(_ *job.Spec, g *job.TaskGroup) {
			r := d[0]
			r.Count = k
			g.PerNode.Devices = []resource.DeviceRequest{r}
		}
	})
	if k > 0 {
		t.addFound("gpus-per-node", formatDevices(d[0].Type, k), formatDevices(d[0].Type, d[0].Count))
	}
}

func formatDevices(kind string, n int) string {
	if kind == "" {
		return strconv.Itoa(n)
	}
	return kind + ":" + strconv.Itoa(n)
}

// tryLimit looks for the longest time limit, in minutes, that fits a hole.
func (t *trial) tryLimit() {
	minutes := int(t.w.Spec.TimeLimit / time.Minute)
	if t.w.Spec.TimeLimit == 0 {
		minutes = 7 * 24 * 60
	}
	k := t.largestWith(minutes, func(k int) func(*job.Spec, *job.TaskGroup) {
		return func(s *job.Spec, _ *job.TaskGroup) { s.TimeLimit = time.Duration(k) * time.Minute }
	})
	if k > 0 {
		of := "no limit"
		if t.w.Spec.TimeLimit > 0 {
			of = formatMinutes(minutes)
		}
		t.addFound("time", formatMinutes(k), of)
	}
}

// formatMinutes writes minutes as Slurm reads them.
func formatMinutes(minutes int) string {
	h, m := minutes/60, minutes%60
	s := strconv.Itoa(h%24) + ":" + strconv.Itoa(m/10) + strconv.Itoa(m%10) + ":00"
	if h >= 24 {
		if h%24 < 10 {
			s = "0" + s
		}
		s = strconv.Itoa(h/24) + "-" + s
	}
	return s
}

// tryKinds tries other types of device.
func (t *trial) tryKinds() {
	d := t.w.Spec.Groups[0].PerNode.Devices
	if len(d) != 1 || d[0].Type == "" {
		return
	}
	for _, kind := range t.types {
		r := d[0]
		r.Type = kind
		if kind != d[0].Type && t.startsWith(func(_ *job.Spec, g *job.TaskGroup) { g.PerNode.Devices = []resource.DeviceRequest{r} }) {
			t.addFound("gpus-per-node", formatDevices(kind, r.Count), formatDevices(d[0].Type, r.Count))
		}
	}
}

// tryPartitions tries other partitions.
func (t *trial) tryPartitions() {
	mine := t.w.Spec.Partitions
	if len(mine) == 0 {
		return
	}
	for _, name := range t.parts {
		if !slices.Contains(mine, name) && t.startsWith(func(s *job.Spec, _ *job.TaskGroup) { s.Partitions = []string{name} }) {
			t.addFound("partition", name, mine[0])
		}
	}
}

// tryLoosened leaves out what narrows the choice of nodes.
func (t *trial) tryLoosened() {
	g := &t.w.Spec.Groups[0]
	if !g.Constraint.IsZero() && t.startsWith(func(_ *job.Spec, g *job.TaskGroup) { g.Constraint = job.Constraint{} }) {
		t.addFound("constraint", "", g.Constraint.Text)
	}
	if g.Exclusive && t.startsWith(func(_ *job.Spec, g *job.TaskGroup) { g.Exclusive = false }) {
		t.addFound("exclusive", "", "")
	}
	if g.Contiguous && t.startsWith(func(_ *job.Spec, g *job.TaskGroup) { g.Contiguous = false }) {
		t.addFound("contiguous", "", "")
	}
}
