// Package class compiles what a job asks for into a Shape: everything that
// decides where it may be placed and nothing else. Equal requests share one
// Shape, so that what is learned of one job (that it does not fit now) holds for
// all that are like it.
package class

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// Shape is the compiled request of a whole gang. It is immutable.
type Shape struct {
	ID         int      // dense, in order of first use
	Partitions []string // any of these holds the whole gang; empty: every node will do
	Pools      []string // one of these holds it; empty: any
	Groups     []Group
	Within     int    // level of the topology of which one domain has all nodes of several groups; 0: none; job.InLeaf
	Else       *Shape // what will do where this does not fit; nil: nothing
	Key        string // equal for equal shapes

	plain *plain // nil: not of that form
}

// Group is one compiled task group. A node that runs t of its tasks and gives x
// of the devices collected in total has to give
//
//	Base + t·Step + x·Extra, and the devices BaseDevices + t·StepDevices + x
//
// MinNodes ≥ 1. MaxNodes 0: as few nodes as will do, but at least MinNodes;
// otherwise as many as can be had up to MaxNodes.
type Group struct {
	MinNodes, MaxNodes int
	Each               int  // exactly so many tasks on each node, Want and Least are 0; 0: Want says
	Want, Least        int  // tasks
	Cap                int  // tasks on one node at most; 0: no bound
	Even               bool // tasks are spread evenly over the nodes, larger counts first; otherwise node after node is filled

	Base, Step, Extra         resource.Vector
	BaseDevices, StepDevices  []Need
	TotalDevices              []Need // over all nodes together; each node of the group has to give one if there are enough
	Total                     resource.Vector
	AllMemory, Whole, Adjoint bool // Adjoint: contiguous in node order

	One, All               resource.Vector // taken of each node, and of all together, at least
	OneDevices, AllDevices int             // undivided devices of any kind, in the same way

	Alternatives [][]string // features; any of them
	Same         bool       // all nodes the same alternative
	Text         string     // of the constraint, for messages
	Must, Not    []string   // sorted

	Within  int // level of the topology of which one domain has all nodes; 0: none; job.InLeaf
	Segment int // the nodes come in so many of one leaf; 0: they do not

	Switches int  // leaves that its nodes are in, at most; 0: any number
	Spread   bool // over as many leaves as can be
	Few      bool // of a range of nodes the smallest number first
}

// In reports whether a pool may hold the gang.
func (s *Shape) In(pool string) bool {
	return len(s.Pools) == 0 || slices.Contains(s.Pools, pool)
}

// Need is a number of devices, or of shares of devices, that match.
type Need struct {
	index.Match
	Count int
	Share resource.Share  // of each; resource.WholeDevice: undivided
	Bytes resource.Amount // of the memory of each; 0: Share says how much. Otherwise that is what it counts for
}

// Undivided reports whether whole devices are needed.
func (n *Need) Undivided() bool { return n.Bytes == 0 && n.Share == resource.WholeDevice }

// Interner hands out one Shape for equal requests. It is not safe for concurrent use.
type Interner struct {
	shapes map[string]*Shape
	recent map[*job.Spec]*Shape // of specifications that were asked for: jobs that are alike share theirs
	plain  map[plain]*Shape
	wishes map[*job.Spec]*wishes // as recent, of jobs that wish for something
	wait   time.Duration         // for switches at most
	next   int
}

const maxRecent = 4096

// NewInterner returns an empty interner.
func NewInterner() *Interner {
	return &Interner{shapes: map[string]*Shape{}, recent: map[*job.Spec]*Shape{}, plain: map[plain]*Shape{}, wishes: map[*job.Spec]*wishes{}, wait: job.DefaultSwitchWait}
}

// Shape returns the shape of a specification, which is not written any more; of one
// with wishes that of its last stage.
func (in *Interner) Shape(spec *job.Spec) *Shape {
	if s := in.recent[spec]; s != nil {
		return s
	}
	if spec.Wishful() {
		w := in.wishesOf(spec)
		return in.chainForms(w, len(w.after)-1)
	}
	s := in.quickShape(spec)
	if len(in.recent) >= maxRecent {
		clear(in.recent)
	}
	in.recent[spec] = s
	return s
}

func (in *Interner) quickShape(spec *job.Spec) *Shape {
	p, ok := plainForm(spec)
	if !ok {
		return in.internShape(spec)
	}
	if s := in.plain[p]; s != nil {
		return s
	}
	s := in.internShape(spec)
	if s.plain == nil {
		s.plain = &p
		in.plain[p] = s
	}
	return s
}

func (in *Interner) internShape(spec *job.Spec) *Shape {
	key := Key(spec)
	if s := in.shapes[key]; s != nil {
		return s
	}
	s := compileOne(spec)
	in.next++
	s.ID, s.Key = in.next, key
	in.shapes[key] = s
	return s
}

// Forget drops a shape that no job has any longer.
func (in *Interner) Forget(s *Shape) {
	delete(in.shapes, s.Key)
	if s.plain != nil {
		delete(in.plain, *s.plain)
	}
	clear(in.recent)
	clear(in.wishes)
}

// Key is equal for two specifications if they are placed alike.
func Key(spec *job.Spec) string {
	groups := slices.Clone(spec.Groups)
	for i := range groups {
		g := &groups[i]
		g.Name, g.Distribution, g.CPUsPerTask, g.Overcommit = "", "", 0, false
		if g.Elastic {
			g.Nodes.Max, g.Elastic, g.Subgroup = g.Nodes.Min, false, 0
		}
		g.NodeList, g.Exclude = sortedNames(g.NodeList), sortedNames(g.Exclude)
	}
	b, err := json.Marshal(struct {
		P []string
		G []job.TaskGroup
		W int    `json:",omitempty"`
		L string `json:",omitempty"`
	}{spec.Partitions, groups, spec.Within, spec.Pool})
	if err != nil {
		panic(fmt.Sprintf("sched/class: a task group cannot be written as JSON: %v", err)) // plain data: cannot happen
	}
	return string(b)
}

// Compile compiles a specification without interning it, one with wishes as if all of
// them could be given up.
func Compile(spec *job.Spec) *Shape { return CompileAfter(spec, 0, 1<<63-1) }

// CompileAfter compiles a specification as it is to be placed after its job has waited
// for so long, where no wait for switches lasts longer than longest.
func CompileAfter(spec *job.Spec, longest, waited time.Duration) *Shape {
	if !spec.Wishful() {
		return compileOne(spec)
	}
	forms := spec.Forms(longest)
	var s *Shape
	for i := len(forms) - 1; i >= 0; i-- {
		if forms[i].After > waited {
			continue
		}
		x := compileOne(forms[i].Spec)
		x.Else = s
		s = x
	}
	return s
}

func compileOne(spec *job.Spec) *Shape {
	s := &Shape{Partitions: spec.Partitions, Groups: make([]Group, len(spec.Groups)), Within: spec.Within}
	if spec.Pool != "" {
		s.Pools = []string{spec.Pool}
	}
	for i := range spec.Groups {
		s.Groups[i] = compileGroup(&spec.Groups[i])
	}
	if len(s.Groups) == 1 {
		g := &s.Groups[0]
		g.Within, s.Within = job.Deeper(g.Within, s.Within), 0
	}
	return s
}

func compileGroup(t *job.TaskGroup) Group {
	g := Group{
		Cap: t.TasksPerNode, AllMemory: t.AllMemory, Whole: t.Exclusive, Adjoint: t.Contiguous,
		Alternatives: t.Constraint.Alternatives, Same: t.Constraint.Same && len(t.Constraint.Alternatives) > 1,
		Text: t.Constraint.Text,
		Must: sortedNames(t.NodeList), Not: sortedNames(t.Exclude),
		BaseDevices: compileNeeds(t.PerNode.Devices), StepDevices: compileNeeds(t.PerTask.Devices), TotalDevices: compileNeeds(t.Total.Devices),
		Total: t.Total.Vector, Extra: t.PerDevice, Within: t.Within,
		Switches: t.Switches, Spread: t.Spread, Few: t.FewNodes,
	}
	if t.Segment > 1 {
		g.Segment = t.Segment
	}
	g.Base = t.PerNode.Add(t.PerDevice.Scale(t.PerNode.DeviceCount()))
	g.Step = t.PerTask.Add(t.PerDevice.Scale(t.PerTask.DeviceCount()))
	g.settleSize(t)
	if g.MaxNodes == 1 || g.MinNodes == 1 && g.Each == 0 && g.Want == 1 && len(g.TotalDevices) == 0 { // one node is what it is
		g.Switches, g.Spread, g.Few = 0, false, false
	}
	g.computeBounds()
	return g
}

// computeBounds works out what is needed at least, so that a state that is too full can be
// told at once.
func (g *Group) computeBounds() {
	base, step, total := countWhole(g.BaseDevices), countWhole(g.StepDevices), countWhole(g.TotalDevices)
	tasks, each := g.Least, g.Each
	if g.Each > 0 {
		tasks = g.Each * g.MinNodes
	} else if len(g.TotalDevices) == 0 && g.Least >= g.MinNodes {
		each = 1
	}
	g.One, g.OneDevices = g.Base.Add(g.Step.Scale(each)), base+step*each
	g.All = g.Base.Scale(g.MinNodes).Add(g.Step.Scale(tasks)).Add(g.Extra.Scale(g.TotalCount())).Add(g.Total)
	g.AllDevices = base*g.MinNodes + step*tasks + total
}

// countWhole counts whole devices, of any kind.
func countWhole(needs []Need) int {
	n := 0
	for _, d := range needs {
		if d.Undivided() {
			n += d.Count
		}
	}
	return n
}

// settleSize settles how many nodes and tasks are asked for.
func (g *Group) settleSize(t *job.TaskGroup) {
	asked := t.Nodes != job.Range{}
	g.Even = asked
	g.MinNodes, g.MaxNodes = max(t.Nodes.Min, len(g.Must), 1), t.Nodes.Max
	if g.MaxNodes > 0 {
		g.MaxNodes = max(g.MaxNodes, t.Nodes.Min)
	}
	if t.Elastic {
		g.MaxNodes = g.MinNodes // more are added while it runs
	}
	if t.Tasks.Want == 0 && asked {
		g.Each = max(t.TasksPerNode, 1)
		return
	}
	g.Want = max(t.Tasks.Want, t.Tasks.Min, 1)
	g.Least = g.Want
	if t.Tasks.Min > 0 {
		g.Least = min(t.Tasks.Min, g.Want)
	}
	if t.Tasks.Want == 0 {
		g.Want = max(t.TasksPerNode, 1) * g.MinNodes
		g.Least = g.Want
	}
}

// TotalCount is how many devices are collected over all nodes.
func (g *Group) TotalCount() int { return countNeeds(g.TotalDevices) }

func countNeeds(needs []Need) int {
	n := 0
	for _, d := range needs {
		n += d.Count
	}
	return n
}

// compileNeeds compiles device requests: sums of equal ones, in order of first mention.
func compileNeeds(requests []resource.DeviceRequest) []Need {
	var out []Need
	for _, r := range requests {
		if r.Count <= 0 {
			continue
		}
		n := Need{index.Match{Kind: r.KindOf(), Type: r.Type, Profile: r.Profile, Memory: r.Memory}, r.Count, r.Share, 0}
		if r.Profile != "" || r.Share <= 0 || r.Whole() {
			n.Share = resource.WholeDevice
		}
		if r.Bytes > 0 && r.Profile == "" {
			n.Bytes, n.Memory = r.Bytes, max(r.Memory, r.Bytes)
		}
		out = Merge(out, n, 1)
	}
	return out
}

// Merge adds times·n to a list of needs; the list may be written to.
func Merge(list []Need, n Need, times int) []Need {
	if times == 0 || n.Count == 0 {
		return list
	}
	for i := range list {
		if list[i].Match == n.Match && list[i].Share == n.Share && list[i].Bytes == n.Bytes {
			list[i].Count += n.Count * times
			return list
		}
	}
	n.Count *= times
	return append(list, n)
}

func sortedNames(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	out := slices.Clone(names)
	slices.SortFunc(out, index.CompareNames)
	return slices.Compact(out)
}

// Addition compiles what is added to one group of a running gang: as many of its nodes
// as come and go together, in one of the pools and partitions. Its claims are of group 0.
func Addition(spec *job.Spec, group int, partitions, pools []string, bounds []Bound) *Shape {
	t := spec.Groups[group]
	t.Nodes = job.Range{Min: t.Unit(), Max: t.Unit()}
	t.Elastic, t.Subgroup, t.NodeList = false, 0, nil // named are the nodes of its minimum: it has them
	s := &Shape{Partitions: partitions, Pools: pools, Groups: []Group{compileGroup(&t)}}
	if features, kind, ok := joinBounds(bounds); !ok || len(features) > 0 && !s.Groups[0].restrictGroup(features, kind) {
		return nil
	}
	return s
}
