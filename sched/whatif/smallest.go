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

// Holders lists the running jobs that have what a waiting one needs (sched.Core.Holders).
func (a *Adviser) Holders(id job.ID) []sched.Holder { return a.core.Holders(id) }

// Smallest lists changes of one kind each, the largest request of each kind that
// would surely start now (sched.Core.Would), that is the smallest change. A job that
// is held, or that would start now anyway, has none.
func (a *Adviser) Smallest(id job.ID) []Smaller {
	w := a.waiting(id)
	if w == nil {
		return nil
	}
	return a.try(w, func(spec *job.Spec) bool { return a.core.Would(a.now, id, spec) })
}

// SmallestByPasses is the same by another way, which takes as long as the queue is: a
// whole pass of a core that is loaded anew for each try.
func (a *Adviser) SmallestByPasses(id job.ID) []Smaller {
	w := a.waiting(id)
	if w == nil {
		return nil
	}
	return a.try(w, func(spec *job.Spec) bool { return a.Passes(id, spec) })
}

// Passes reports whether a job would start in a whole pass if it asked for what spec says.
func (a *Adviser) Passes(id job.ID, spec *job.Spec) bool {
	next := a.waiting(id).Submitted
	next.Spec = spec
	for _, d := range sched.Load(a.s).Step(a.now, next) {
		if d, ok := d.(sched.Start); ok && d.Job == id {
			return true
		}
	}
	return false
}

// waiting finds a job that a change of its request could start.
func (a *Adviser) waiting(id job.ID) *sched.Waiting {
	i, ok := slices.BinarySearchFunc(a.s.Queue, id, func(w sched.Waiting, id job.ID) int { return cmp.Compare(w.Job, id) })
	if !ok || a.s.Queue[i].Gate != nil || len(a.s.Queue[i].Spec.Groups) != 1 {
		return nil
	}
	return &a.s.Queue[i]
}

func (a *Adviser) try(w *sched.Waiting, asks func(spec *job.Spec) bool) []Smaller {
	t := &trial{w: w, asks: asks, types: a.types, parts: a.parts}
	for _, try := range []func(*trial){(*trial).nodes, (*trial).devices, (*trial).limit, (*trial).kinds, (*trial).partitions, (*trial).loosen} {
		try(t)
	}
	return t.out
}

// starts reports whether the job would start now if change were made to what it asks for.
func (t *trial) starts(change func(s *job.Spec, g *job.TaskGroup)) bool {
	spec := *t.w.Spec
	spec.Groups = slices.Clone(spec.Groups)
	change(&spec, &spec.Groups[0])
	return t.asks(&spec)
}

func (t *trial) found(option, value, of string) {
	t.out = append(t.out, Smaller{Option: option, Value: value, Of: of})
}

// largest is the largest number below n with which the job starts, 0: none.
func (t *trial) largest(n int, change func(k int) func(*job.Spec, *job.TaskGroup)) int {
	if n < 2 || !t.starts(change(1)) {
		return 0
	}
	return 1 + sort.Search(n-2, func(i int) bool { return !t.starts(change(i + 2)) })
}

func (t *trial) nodes() {
	g := &t.w.Spec.Groups[0]
	n := g.Nodes.Min
	if k := t.largest(n, func(k int) func(*job.Spec, *job.TaskGroup) { return nodesOf(n, k) }); k > 0 {
		t.found("nodes", strconv.Itoa(k), strconv.Itoa(n))
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

func (t *trial) devices() {
	d := t.w.Spec.Groups[0].PerNode.Devices
	if len(d) != 1 {
		return
	}
	k := t.largest(d[0].Count, func(k int) func(*job.Spec, *job.TaskGroup) {
		return func(_ *job.Spec, g *job.TaskGroup) {
			r := d[0]
			r.Count = k
			g.PerNode.Devices = []resource.DeviceRequest{r}
		}
	})
	if k > 0 {
		t.found("gpus-per-node", typed(d[0].Type, k), typed(d[0].Type, d[0].Count))
	}
}

func typed(kind string, n int) string {
	if kind == "" {
		return strconv.Itoa(n)
	}
	return kind + ":" + strconv.Itoa(n)
}

// limit looks for the longest time limit, in minutes, that fits a hole.
func (t *trial) limit() {
	minutes := int(t.w.Spec.TimeLimit / time.Minute)
	if t.w.Spec.TimeLimit == 0 {
		minutes = 7 * 24 * 60
	}
	k := t.largest(minutes, func(k int) func(*job.Spec, *job.TaskGroup) {
		return func(s *job.Spec, _ *job.TaskGroup) { s.TimeLimit = time.Duration(k) * time.Minute }
	})
	if k > 0 {
		of := "no limit"
		if t.w.Spec.TimeLimit > 0 {
			of = clock(minutes)
		}
		t.found("time", clock(k), of)
	}
}

// clock writes minutes as Slurm reads them.
func clock(minutes int) string {
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

// kinds tries other types of device.
func (t *trial) kinds() {
	d := t.w.Spec.Groups[0].PerNode.Devices
	if len(d) != 1 || d[0].Type == "" {
		return
	}
	for _, kind := range t.types {
		r := d[0]
		r.Type = kind
		if kind != d[0].Type && t.starts(func(_ *job.Spec, g *job.TaskGroup) { g.PerNode.Devices = []resource.DeviceRequest{r} }) {
			t.found("gpus-per-node", typed(kind, r.Count), typed(d[0].Type, r.Count))
		}
	}
}

// partitions tries other partitions.
func (t *trial) partitions() {
	mine := t.w.Spec.Partitions
	if len(mine) == 0 {
		return
	}
	for _, name := range t.parts {
		if !slices.Contains(mine, name) && t.starts(func(s *job.Spec, _ *job.TaskGroup) { s.Partitions = []string{name} }) {
			t.found("partition", name, mine[0])
		}
	}
}

// loosen leaves out what narrows the choice of nodes.
func (t *trial) loosen() {
	g := &t.w.Spec.Groups[0]
	if !g.Constraint.IsZero() && t.starts(func(_ *job.Spec, g *job.TaskGroup) { g.Constraint = job.Constraint{} }) {
		t.found("constraint", "", g.Constraint.Text)
	}
	if g.Exclusive && t.starts(func(_ *job.Spec, g *job.TaskGroup) { g.Exclusive = false }) {
		t.found("exclusive", "", "")
	}
	if g.Contiguous && t.starts(func(_ *job.Spec, g *job.TaskGroup) { g.Contiguous = false }) {
		t.found("contiguous", "", "")
	}
}
