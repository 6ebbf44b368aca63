package place

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/share"
)

// Foresight is what is expected to arrive (share.Outlook), for one table: a Quick that
// is given one places what takes a single node where least becomes useless for that,
// instead of where least stays free. It is immutable and good until the table changes.
//
// MIG instances are left out: they are neither counted nor placed by it. Of what a
// constraint, partition or type excludes, nothing is of use to a request.
type Foresight struct {
	outlook *share.Outlook
	banks   [][]bank // by class
}

// bank is the devices of a class that no request can tell apart. Each has a number of
// its own, which the outlook takes for a model.
type bank struct {
	model  int
	set    index.Set
	device fleet.Device // one of them
}

// Foresee makes one of what has arrived.
func Foresee(t *index.Table, m *share.Memory) *Foresight {
	f := &Foresight{banks: make([][]bank, len(t.Classes()))}
	models := 0
	example := make([]*index.Node, len(t.Classes()))
	for pos := range t.Len() {
		example[t.Class(pos)] = t.Node(pos)
	}
	for i, c := range t.Classes() {
		for _, set := range c.Groups {
			d := example[i].Devices[set.Positions()[0]]
			if d.Profile == "" {
				f.banks[i] = append(f.banks[i], bank{models, set, d})
				models++
			}
		}
	}
	known := map[string][]int{}
	f.outlook = m.Outlook(func(of string) []int {
		list, ok := known[of]
		if !ok {
			list = f.servingModels(t, of)
			known[of] = list
		}
		return list
	})
	return f
}

// asked is what a request says of its devices and nodes, as share.Seen.Of has it.
type asked struct {
	Kind       string          `json:"kind,omitempty"`
	Type       string          `json:"type,omitempty"`
	Memory     resource.Amount `json:"memory,omitempty"`
	Partitions []string        `json:"partitions,omitempty"`
	Features   [][]string      `json:"features,omitempty"`
}

// servingModels lists the models that will do.
func (f *Foresight) servingModels(t *index.Table, of string) []int {
	var a asked
	if err := json.Unmarshal([]byte(of), &a); err != nil {
		return nil // not written by Arrival: of no use
	}
	match := index.Match{Kind: a.Kind, Type: a.Type, Memory: a.Memory}
	var out []int
	for i, c := range t.Classes() {
		if !HasAny(c.Features, a.Features) || !inAny(c.Parts, a.Partitions) {
			continue
		}
		for _, b := range f.banks[i] {
			if match.Accepts(b.device) {
				out = append(out, b.model)
			}
		}
	}
	return out
}

// inAny reports whether a node in these partitions (none: in all) is in one of those
// that are asked for (none: in any).
func inAny(have, want []string) bool {
	return len(have) == 0 || len(want) == 0 || slices.ContainsFunc(want, func(p string) bool { return slices.Contains(have, p) })
}

// Arrival is a group of a gang as a Foresight counts it: what one of its nodes gives, and
// on how many nodes. ok is false for what is not counted: MIG instances, several parts
// of devices, devices of several kinds or collected in total, whole nodes.
func Arrival(shape *class.Shape, group int) (s share.Seen, nodes int, ok bool) {
	g := &shape.Groups[group]
	need, tasks, ok := singleDevice(g)
	if !ok {
		return s, 0, false
	}
	s.CPU = int64(g.Base.Add(g.Step.Scale(tasks)).CPU)
	a := asked{Partitions: shape.Partitions, Features: g.Alternatives}
	if need.Count > 0 {
		s.Count, s.Milli = need.Count, int(need.Share)
		a.Kind, a.Type, a.Memory = need.Kind, need.Type, need.Memory
	}
	of, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("sched/place: what is asked for cannot be written: %v", err)) // plain data: cannot happen
	}
	s.Of = string(of)
	return s, g.MinNodes, true
}

// singleDevice is what each node of a group gives, if that is devices of one kind or a part
// of one; and how many tasks it runs.
func singleDevice(g *class.Group) (need class.Need, tasks int, ok bool) {
	if g.Whole || len(g.TotalDevices) > 0 || !g.Total.IsZero() {
		return need, 0, false
	}
	tasks = g.Each
	if tasks == 0 {
		tasks = (max(g.Want, 1) + g.MinNodes - 1) / g.MinNodes
	}
	all := slices.Clone(g.BaseDevices)
	for _, n := range g.StepDevices {
		all = class.Merge(all, n, tasks)
	}
	switch {
	case len(all) == 0:
		return need, tasks, true
	case len(all) > 1, all[0].Profile != "", !all[0].Undivided() && all[0].Count > 1:
		return need, 0, false
	}
	return all[0], tasks, true
}

// Divides reports whether a gang asks for parts of devices.
func Divides(shape *class.Shape) bool {
	for i := range shape.Groups {
		if asksShares(&shape.Groups[i]) {
			return true
		}
	}
	return false
}

// rater rates cells for one kind of request.
type rater struct {
	need  class.Need
	cpu   int64
	known []rating // by cell
	stock share.Stock
	at    [][]int // positions of the devices of the stock, by bank
}

type rating struct {
	known bool
	rate  int64
}

// Prefer has a Quick place by what is expected; nil: where least stays free. What it
// cannot rate it places as before.
func (q *Quick) Prefer(f *Foresight) {
	if q.foresight == f {
		return
	}
	q.foresight, q.rated = f, nil
	if f == nil || q.nodes != 1 {
		return
	}
	if need, tasks, ok := singleDevice(q.v.g); ok && tasks == q.part {
		q.rated = &rater{need: need, cpu: int64(q.v.g.Base.Add(q.v.g.Step.Scale(tasks)).CPU)}
	}
}

// rateCell is how good it is to place the request on a node of a cell which serves it.
func (q *Quick) rateCell(c *index.Cell) int64 {
	r := q.rated
	if n := q.cells.Len(); len(r.known) < n {
		r.known = append(r.known, make([]rating, n-len(r.known))...)
	}
	x := &r.known[c.ID]
	if !x.known {
		rate, _ := q.rateNode(c.Pos, &c.Row)
		*x = rating{true, rate}
	}
	return x.rate
}

// rateNode rates one node, and says which of its devices a part is taken of: its position.
func (q *Quick) rateNode(pos int, row *index.Row) (rate int64, device int) {
	r, n := q.rated, q.t.Node(pos)
	banks := q.foresight.banks[q.t.Class(pos)]
	s := &r.stock
	s.CPU = int64(row.Free.CPU)
	s.Banks = slices.Grow(s.Banks[:0], len(banks))[:len(banks)]
	if len(r.at) < len(banks) {
		r.at = make([][]int, len(banks))
	}
	for i, b := range banks {
		bank := &s.Banks[i]
		bank.Model, bank.Take, bank.Left, r.at[i] = b.model, 0, bank.Left[:0], r.at[i][:0]
		if r.need.Count > 0 && r.need.Accepts(b.device) {
			bank.Take = shareTaken(&r.need, &b.device)
		}
		for p := range min(len(n.Devices), index.MaxDevices) {
			if b.set.Has(p) {
				bank.Left = append(bank.Left, int(max(0, inThousandths(&b.device, row.Left(n, p)))))
				r.at[i] = append(r.at[i], p)
			}
		}
	}
	rate, at := q.foresight.outlook.Rate(s, r.cpu, r.need.Count, r.need.Count > 0 && !r.need.Undivided())
	if at.Device < 0 {
		return rate, -1
	}
	return rate, r.at[at.Bank][at.Device]
}

// shareTaken is how much of a device a need takes, in thousandths, rounded down as what is
// left is, but something.
func shareTaken(n *class.Need, d *fleet.Device) int {
	return max(1, int(inThousandths(d, resource.Load(d.Memory, n.Share, n.Bytes))))
}

// divideDevice claims the part of a device that leaves least useless; false: there is none, by
// thousandths, or what was chosen has not room to the byte.
func (q *Quick) divideDevice(pos int, row *index.Row) ([]fleet.DeviceClaim, bool) {
	if q.rated == nil || q.rated.need.Count == 0 || q.rated.need.Undivided() {
		return nil, false
	}
	_, device := q.rateNode(pos, row)
	if device < 0 {
		return nil, false
	}
	n, need := q.t.Node(pos), &q.rated.need
	if row.Left(n, device) < resource.Load(n.Devices[device].Memory, need.Share, need.Bytes) {
		return nil, false
	}
	return []fleet.DeviceClaim{{Index: n.Devices[device].Index, Share: need.Share, Bytes: need.Bytes}}, true
}
