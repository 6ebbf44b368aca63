package index

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Row says what is free on one node.
type Row struct {
	Free    resource.Vector // may be negative where a node shrank below what is held on it
	Devices Set             // free as a whole
	Full    Set             // held as a whole by one claim
	Parts   []Part          // devices of which shares are held, by position; never written in place
	Holds   int             // claims on the node
	Whole   int             // claims that have the node alone
}

// Part is a device that is held in part, in units of resource.Load.
type Part struct {
	Pos  int
	Held resource.Amount
}

// State is what is free on each node of a table, by position.
type State struct {
	rows []Row
	sum  *Summary // nil: not worked out since the last change
}

// Summary bounds what is free: nothing larger can be placed on one node, or on all.
type Summary struct {
	Largest, All               resource.Vector // CPU, memory and disk; no named resources
	LargestDevices, AllDevices int             // free as a whole
	Shared                     bool            // some device is held in part
}

// Summary works out the bounds, once after each change.
func (s *State) Summary() *Summary {
	if s.sum != nil {
		return s.sum
	}
	m := &Summary{}
	for i := range s.rows {
		r := &s.rows[i]
		if r.Whole > 0 {
			continue
		}
		m.Largest.CPU = max(m.Largest.CPU, r.Free.CPU)
		m.Largest.Memory = max(m.Largest.Memory, r.Free.Memory)
		m.Largest.Disk = max(m.Largest.Disk, r.Free.Disk)
		m.All.CPU = m.All.CPU.Add(max(0, r.Free.CPU))
		m.All.Memory = m.All.Memory.Add(max(0, r.Free.Memory))
		m.All.Disk = m.All.Disk.Add(max(0, r.Free.Disk))
		d := r.Devices.Len()
		m.LargestDevices = max(m.LargestDevices, d)
		m.AllDevices += d
		m.Shared = m.Shared || len(r.Parts) > 0
	}
	s.sum = m
	return m
}

// Empty returns the state in which nothing is held. With ideal, devices in
// foreign use count as free.
func (t *Table) Empty(ideal bool) *State {
	s := &State{rows: make([]Row, len(t.nodes))}
	for i, n := range t.nodes {
		s.rows[i] = n.emptyRow(ideal)
	}
	return s
}

// Vacant is Empty for those who only read it: it is made once for a table.
func (t *Table) Vacant(ideal bool) *State {
	t.renewDerived()
	i := 0
	if ideal {
		i = 1
	}
	if t.vacant[i] == nil {
		t.vacant[i] = t.Empty(ideal)
	}
	return t.vacant[i]
}

func (n *Node) emptyRow(ideal bool) Row {
	r := Row{Free: n.Capacity, Devices: n.Usable}
	if ideal {
		r.Devices = n.Ideal
	}
	return r
}

// Clone returns an independent copy.
func (s *State) Clone() *State { return &State{rows: slices.Clone(s.rows)} }

// Row returns the row at a position, to be read only.
func (s *State) Row(i int) *Row { return &s.rows[i] }

// Take counts claims as held. Nodes and devices that the table does not know are
// passed over: what is held there is nowhere free anyway.
func (s *State) Take(t *Table, claims []fleet.Claim) { s.applyClaims(t, claims, 1) }

// Release counts claims as given back.
func (s *State) Release(t *Table, claims []fleet.Claim) { s.applyClaims(t, claims, -1) }

func (s *State) applyClaims(t *Table, claims []fleet.Claim, sign int) {
	for i := range claims {
		if p := t.Find(claims[i].Key()); p >= 0 {
			s.Change(t, p, &claims[i], sign)
		}
	}
}

// Change counts one claim on the node at a position as held (sign 1) or as given
// back (-1).
func (s *State) Change(t *Table, pos int, c *fleet.Claim, sign int) {
	s.sum = nil
	s.rows[pos].Change(t.nodes[pos], c, sign)
}

// Change is State.Change for the row of one node.
func (r *Row) Change(n *Node, c *fleet.Claim, sign int) {
	if sign > 0 {
		r.Free = r.Free.Sub(c.Take)
	} else {
		r.Free = r.Free.Add(c.Take)
	}
	r.Holds += sign
	if c.Whole {
		r.Whole += sign
	}
	for _, d := range c.Devices {
		r.changeDevice(n, d, sign)
	}
}

// changeDevice changes how much of one device is held.
func (r *Row) changeDevice(n *Node, d fleet.DeviceClaim, sign int) {
	pos := n.devicePosition(d.Index)
	if pos < 0 {
		return
	}
	if d.Share == resource.WholeDevice && d.Bytes == 0 && r.Full.Has(pos) == (sign < 0) && (sign < 0 || r.sharedPart(pos) == 0) {
		r.changeWhole(n, pos, sign)
		return
	}
	held := r.sharedPart(pos) + resource.Amount(sign)*resource.Load(n.Devices[pos].Memory, d.Share, d.Bytes)
	i, found := slices.BinarySearchFunc(r.Parts, pos, func(p Part, pos int) int { return p.Pos - pos })
	switch {
	case held == 0 && found:
		r.Parts = slices.Delete(slices.Clone(r.Parts), i, i+1)
	case held != 0 && found:
		r.Parts = slices.Clone(r.Parts)
		r.Parts[i].Held = held
	case held != 0:
		r.Parts = slices.Insert(slices.Clone(r.Parts), i, Part{pos, held})
	}
	r.updateFree(n, pos)
}

// changeWhole takes an undivided device or gives it back.
func (r *Row) changeWhole(n *Node, pos, sign int) {
	if sign > 0 {
		r.Full = r.Full.With(pos)
	} else {
		r.Full = r.Full.Without(pos)
	}
	r.updateFree(n, pos)
}

// updateFree notes whether a device is free as a whole.
func (r *Row) updateFree(n *Node, pos int) {
	if !r.Full.Has(pos) && r.sharedPart(pos) == 0 && n.Usable.Has(pos) {
		r.Devices = r.Devices.With(pos)
	} else {
		r.Devices = r.Devices.Without(pos)
	}
}

// Left is how much of a device is free, in units of resource.Load.
func (r *Row) Left(n *Node, pos int) resource.Amount {
	if r.Full.Has(pos) {
		return -r.sharedPart(pos)
	}
	return resource.FullLoad(n.Devices[pos].Memory) - r.sharedPart(pos)
}

// hasRoomFor reports whether a claim on the device at a position has room beside what is held.
func (r *Row) hasRoomFor(n *Node, pos int, d fleet.DeviceClaim) bool {
	memory := n.Devices[pos].Memory
	return d.Bytes <= memory && resource.Load(memory, d.Share, d.Bytes) <= r.Left(n, pos)
}

// Same reports whether the same is free and held in two rows of a node.
func (r *Row) Same(n *Node, o *Row) bool {
	if !r.Free.Sub(o.Free).IsZero() || r.Devices != o.Devices || r.Holds != o.Holds || r.Whole != o.Whole {
		return false
	}
	for pos := range min(len(n.Devices), MaxDevices) {
		if r.Left(n, pos) != o.Left(n, pos) {
			return false
		}
	}
	return true
}

// sharedPart is how much of it is held by shares.
func (r *Row) sharedPart(pos int) resource.Amount {
	for _, p := range r.Parts {
		if p.Pos == pos {
			return p.Held
		}
	}
	return 0
}

// devicePosition finds a device by its driver's index, or returns -1.
func (n *Node) devicePosition(index int) int {
	if index >= 0 && index < len(n.Devices) && index < MaxDevices && n.Devices[index].Index == index {
		return index
	}
	for p, d := range n.Devices[:min(len(n.Devices), MaxDevices)] {
		if d.Index == index {
			return p
		}
	}
	return -1
}

// Fits reports whether claims that were chosen before could be taken as they
// are: on nodes that are up, within what is free, device by device.
func (s *State) Fits(t *Table, claims []fleet.Claim) bool {
	after := make(map[int]Row, len(claims))
	for i := range claims {
		c := &claims[i]
		p := t.Find(c.Key())
		if p < 0 || t.nodes[p].State != fleet.Up {
			return false
		}
		r, seen := after[p]
		if !seen {
			r = s.rows[p]
		}
		if !r.Admits(t.nodes[p], c) {
			return false
		}
		r.Change(t.nodes[p], c, 1)
		after[p] = r
	}
	return true
}

// Admits reports whether a claim that was chosen before could be taken of a node on
// which so much is free, device by device.
func (r *Row) Admits(n *Node, c *fleet.Claim) bool {
	if r.Whole > 0 || c.Whole && r.Holds > 0 || !r.Free.Covers(c.Take) {
		return false
	}
	for _, d := range c.Devices {
		pos := n.devicePosition(d.Index)
		if pos < 0 || !n.Usable.Has(pos) || !r.hasRoomFor(n, pos, d) {
			return false
		}
	}
	return true
}

// Room reports whether a share of a device that was chosen before is free, whatever state
// the node or the device is in.
func (r *Row) Room(n *Node, d fleet.DeviceClaim) bool {
	pos := n.devicePosition(d.Index)
	return pos < 0 || r.hasRoomFor(n, pos, d)
}

// Within makes each row of s no larger than the same row of o: what is left is
// free in both states.
func (s *State) Within(o *State) {
	for i := range s.rows {
		s.limitRow(o, i)
	}
}

func (s *State) limitRow(o *State, i int) {
	s.sum = nil
	s.rows[i].Within(&o.rows[i])
}

// Within makes a row no larger than another one of the same node: what is left is
// free in both.
func (r *Row) Within(o *Row) {
	r.Free = leastOf(r.Free, o.Free)
	r.Devices, r.Full = r.Devices.And(o.Devices), r.Full.Union(o.Full)
	r.Holds = max(r.Holds, o.Holds)
	r.Whole = max(r.Whole, o.Whole)
	if len(r.Parts)+len(o.Parts) > 0 {
		r.Parts = mostHeld(r.Parts, o.Parts)
	}
}

// Put replaces the row at a position.
func (s *State) Put(pos int, r *Row) {
	s.sum = nil
	s.rows[pos] = *r
}

// Copy makes the row at a position equal to that of a, bounded by that of b.
func (s *State) Copy(a, b *State, pos int) {
	s.rows[pos] = a.rows[pos]
	s.limitRow(b, pos)
}

// leastOf is the smaller amount of each resource.
func leastOf(a, b resource.Vector) resource.Vector {
	out := resource.Vector{CPU: min(a.CPU, b.CPU), Memory: min(a.Memory, b.Memory), Disk: min(a.Disk, b.Disk)}
	if len(a.Named)+len(b.Named) == 0 {
		return out
	}
	for _, x := range a.Named {
		out = out.With(x.Name, min(x.Amount, b.Get(x.Name)))
	}
	for _, x := range b.Named {
		out = out.With(x.Name, min(x.Amount, a.Get(x.Name)))
	}
	return out
}

// mostHeld merges shares held in two states, taking the larger of each device.
func mostHeld(a, b []Part) []Part {
	out := slices.Clone(a)
	for _, p := range b {
		i, found := slices.BinarySearchFunc(out, p.Pos, func(x Part, pos int) int { return x.Pos - pos })
		if found {
			out[i].Held = max(out[i].Held, p.Held)
		} else {
			out = slices.Insert(out, i, p)
		}
	}
	return out
}
