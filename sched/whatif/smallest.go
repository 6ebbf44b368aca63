package whatif

import (
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// Smaller is a change of a waiting job's request with which it would start now.
type Smaller struct {
	Option string // of sbatch, without dashes: "nodes", "gpus-per-node", "time", "partition", "constraint", "exclusive"
	Value  string // what to give it; empty: leave it out
	Of     string // what it is now
}

// trial asks a core that was loaded anew whether the job starts at once if it asks
// for something else.
type trial struct {
	s    *sched.Snapshot
	now  sched.Instant
	w    *sched.Waiting
	left int // loads that may still be made
	out  []Smaller
}

// Smallest lists changes of one kind each, the largest request of each kind that
// would start now, that is the smallest change. No more than so many loads of the
// snapshot are made. A job that is held, or that would start now anyway, has none.
func Smallest(s *sched.Snapshot, now sched.Instant, id job.ID, loads int) []Smaller {
	i := slices.IndexFunc(s.Queue, func(w sched.Waiting) bool { return w.Job == id })
	if i < 0 || s.Queue[i].Gate != nil || len(s.Queue[i].Spec.Groups) != 1 {
		return nil
	}
	t := &trial{s: s, now: max(now, s.At), w: &s.Queue[i], left: loads}
	for _, try := range []func(*trial){(*trial).nodes, (*trial).devices, (*trial).limit, (*trial).types, (*trial).partitions, (*trial).loosen} {
		try(t)
	}
	return t.out
}

// starts reports whether the job would start now if change were made to what it asks for.
func (t *trial) starts(change func(s *job.Spec, g *job.TaskGroup)) bool {
	if t.left <= 0 {
		return false
	}
	t.left--
	spec := *t.w.Spec
	spec.Groups = slices.Clone(spec.Groups)
	change(&spec, &spec.Groups[0])
	next := t.w.Submitted
	next.Spec = &spec
	for _, d := range sched.Load(t.s).Step(t.now, next) {
		if d, ok := d.(sched.Start); ok && d.Job == t.w.Job {
			return true
		}
	}
	return false
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

// types tries other types of device.
func (t *trial) types() {
	d := t.w.Spec.Groups[0].PerNode.Devices
	if len(d) != 1 || d[0].Type == "" {
		return
	}
	var kinds []string
	for i := range t.s.Nodes {
		for _, x := range t.s.Nodes[i].Devices {
			if x.Type != d[0].Type && !slices.Contains(kinds, x.Type) {
				kinds = append(kinds, x.Type)
			}
		}
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		r := d[0]
		r.Type = kind
		if t.starts(func(_ *job.Spec, g *job.TaskGroup) { g.PerNode.Devices = []resource.DeviceRequest{r} }) {
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
	var names []string
	for i := range t.s.Nodes {
		for _, p := range t.s.Nodes[i].Parts {
			if !slices.Contains(mine, p) && !slices.Contains(names, p) {
				names = append(names, p)
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if t.starts(func(s *job.Spec, _ *job.TaskGroup) { s.Partitions = []string{name} }) {
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
