// Package ledger keeps who holds what: allocations, fenced by attempt and epoch,
// and freed on proof only.
//
// It is pure: no clock, no I/O, no lock. control applies to it what the journal
// holds, so that replaying the journal gives the same ledger. The ledger checks
// every claim against the nodes by itself; it does not trust the scheduler that
// proposed it.
package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// ID is an allocation's number; never used again, zero is none.
type ID uint64

// Last is the largest number that an allocation may have; nobody gets there.
const Last ID = 1 << 62

// Status of an allocation.
type Status string

// The statuses. Freed allocations leave the ledger; history keeps them.
const (
	Held      Status = "held"
	Uncertain Status = "uncertain" // held, and nobody can prove what lives on it
)

// Allocation is what one attempt of one job holds.
type Allocation struct {
	ID      ID            `json:"id"`
	Job     job.ID        `json:"job"`
	Attempt uint32        `json:"attempt"`
	Epoch   uint64        `json:"epoch"` // of the leader that made it
	Pool    string        `json:"pool"`
	Status  Status        `json:"status"`
	Claims  []fleet.Claim `json:"claims"`
	Adds    ID            `json:"adds,omitempty"`    // the allocation of the same attempt that this one was added to; 0: none
	Flavors []string      `json:"flavors,omitempty"` // of quotas, in which the job is counted; the ledger does not look at them
	License string        `json:"license,omitempty"` // of alternatives that the job asked for, the one that it has; nor at this

	// Parked says that its processes are proved suspended, to make room: CPUs and devices
	// are for others meanwhile, the rest stays held.
	Parked bool `json:"parked,omitempty"`
}

// Ledger is the set of live allocations over a set of nodes. A claim is on the node of its name
// in the pool of its allocation. Where that pool no longer has the node, and one other pool has
// a node of that name, the claim counts on that one: it is the same machine in another pool.
// Invariants (checked by Check):
//   - on every node the sum of Take is within capacity;
//   - on every device the sum of shares is at most resource.WholeDevice, and with the
//     bytes that are held of its memory, at most the device;
//   - a parked allocation counts without its CPUs and devices;
//   - a Whole claim shares its node with claims of its own allocation alone;
//   - a job has at most one allocation, and others that were added to it, which are
//     freed before it.
type Ledger struct {
	nodes *fleet.ByNode[*node]    // that are described, or held
	there *fleet.ByNode[struct{}] // those of them that their pools have now
	live  map[ID]*Allocation
	byJob map[job.ID]ID
	added map[ID]int // how many were added to an allocation
	next  ID
}

type node struct {
	fleet.Node
	known  bool // false: claims are held on a node that is no longer reported
	used   resource.Vector
	shares map[int]held
	whole  ID
	holds  map[ID]int // claims of each allocation
}

// held is what is held of one device: thousandths by some claims, bytes by others.
type held struct {
	share resource.Share
	bytes resource.Amount
}

func (h held) addDevice(d fleet.DeviceClaim) held {
	if d.Bytes != 0 {
		return held{h.share, h.bytes.Add(d.Bytes)}
	}
	return held{h.share + d.Share, h.bytes}
}

// exceedsMemory reports whether it is more than a device with so much memory has.
func (h held) exceedsMemory(memory resource.Amount) bool {
	return h.share > resource.WholeDevice || h.bytes > memory ||
		h.bytes > 0 && resource.Load(memory, 0, h.bytes).Add(resource.Load(memory, h.share, 0)) > resource.FullLoad(memory)
}

// New returns an empty ledger.
func New() *Ledger {
	return &Ledger{nodes: fleet.NewByNode[*node](), there: fleet.NewByNode[struct{}](), live: map[ID]*Allocation{}, byJob: map[job.ID]ID{}, added: map[ID]int{}, next: 1}
}

// SetNode adds or replaces the description of a node. What is held on it stays
// held even where the new capacity is smaller.
func (l *Ledger) SetNode(n fleet.Node) {
	k := n.Key()
	e := l.node(k)
	e.Node, e.known = n, true
	if _, ok := l.there.Get(k); !ok {
		l.there.Set(k, struct{}{})
		l.recountName(k.Name)
	}
}

// RemoveNode notes that a pool no longer has a node. What is held on it stays held; where
// another pool has the machine from then on, it is held there.
func (l *Ledger) RemoveNode(k fleet.NodeKey) {
	e := l.node(k)
	e.Node, e.known = fleet.Node{Name: k.Name, Pool: k.Pool, State: fleet.Down}, true
	if _, ok := l.there.Get(k); ok {
		l.there.Delete(k)
		l.recountName(k.Name)
	}
}

func (l *Ledger) node(k fleet.NodeKey) *node {
	e, ok := l.nodes.Get(k)
	if !ok {
		e = newNode(k)
		l.nodes.Set(k, e)
	}
	return e
}

func newNode(k fleet.NodeKey) *node {
	return &node{Node: fleet.Node{Name: k.Name, Pool: k.Pool}, shares: map[int]held{}, holds: map[ID]int{}}
}

// claimNode is the node on which an allocation's claim counts.
func (l *Ledger) claimNode(a *Allocation, c *fleet.Claim) fleet.NodeKey {
	k, _ := l.there.Find(fleet.NodeKey{Pool: a.Pool, Name: c.Node})
	return k
}

// recountName counts anew what is held on the nodes of a name, after one came or went.
func (l *Ledger) recountName(name string) {
	pools := l.nodes.Pools(name)
	if len(pools) < 2 {
		return
	}
	held := map[ID]bool{} // allocations with a claim on the name: each counts on one of these nodes
	for _, pool := range pools {
		e := l.node(fleet.NodeKey{Pool: pool, Name: name})
		for id := range e.holds {
			held[id] = true
		}
		e.used, e.whole = resource.Vector{}, 0
		clear(e.shares)
		clear(e.holds)
	}
	for _, id := range slices.Sorted(maps.Keys(held)) {
		a := l.live[id]
		for i := range a.Claims {
			if a.Claims[i].Node == name {
				l.countClaim(a, a.Claims[i], 1)
			}
		}
	}
}

// HeldOn counts the claims on a node.
func (l *Ledger) HeldOn(k fleet.NodeKey) (n int) {
	if e, ok := l.nodes.Get(k); ok {
		for _, claims := range e.holds {
			n += claims
		}
	}
	return n
}

// NextID returns the number that the next allocation must have.
func (l *Ledger) NextID() ID { return l.next }

// Verify reports why an allocation cannot be held now, nil if it can. Errors are
// fault.Conflict: the state has moved on since the proposal.
func (l *Ledger) Verify(a *Allocation) error {
	if err := l.checkKind(a); err != nil {
		return err
	}
	if err := a.checkClaims(); err != nil {
		return err
	}
	type demand struct {
		take   resource.Vector
		shares map[int][]fleet.DeviceClaim
		whole  bool
	}
	byNode := map[fleet.NodeKey]*demand{}
	for i := range a.Claims {
		c := &a.Claims[i]
		k := l.claimNode(a, c)
		d := byNode[k]
		if d == nil {
			d = &demand{shares: map[int][]fleet.DeviceClaim{}}
			byNode[k] = d
		}
		d.take = d.take.Add(c.Take)
		d.whole = d.whole || c.Whole
		for _, x := range c.Devices {
			d.shares[x.Index] = append(d.shares[x.Index], x)
		}
	}
	for i := range a.Claims { // in claim order, so that the first error is always the same one
		c := &a.Claims[i]
		k := l.claimNode(a, c)
		n, _ := l.nodes.Get(k)
		d := byNode[k]
		switch {
		case n == nil || !n.known:
			return fault.New(fault.Conflict, "node %s is not known", c.Node)
		case n.State != fleet.Up:
			return fault.New(fault.Conflict, "node %s is %s", c.Node, n.State)
		case n.whole != 0 || d.whole && len(n.holds) > 0:
			return fault.New(fault.Conflict, "node %s is not free as a whole", c.Node)
		}
		if what, missing := n.Capacity.Sub(n.used).Shortage(d.take); what != "" {
			return fault.New(fault.Conflict, "node %s lacks %d of %s", c.Node, missing, what)
		}
		for _, x := range c.Devices {
			i := slices.IndexFunc(n.Devices, func(dev fleet.Device) bool { return dev.Index == x.Index })
			if i < 0 {
				return fault.New(fault.Conflict, "node %s has no device %d", c.Node, x.Index)
			}
			if why := n.Devices[i].Fenced; why != "" {
				return fault.New(fault.Conflict, "device %d of node %s is fenced: %s", x.Index, c.Node, why)
			}
			sum := n.shares[x.Index]
			for _, y := range d.shares[x.Index] {
				sum = sum.addDevice(y)
			}
			if sum.exceedsMemory(n.Devices[i].Memory) || x.Share <= 0 {
				return fault.New(fault.Conflict, "device %d of node %s is taken", x.Index, c.Node)
			}
		}
	}
	return nil
}

// checkKind reports why a job cannot have one more allocation of that kind.
func (l *Ledger) checkKind(a *Allocation) error {
	other, holds := l.byJob[a.Job]
	switch {
	case a.Adds == 0 && holds:
		return fault.New(fault.Conflict, "job %d already holds allocation %d", a.Job, other)
	case a.Adds != 0 && (!holds || other != a.Adds || l.live[other].Attempt != a.Attempt):
		return fault.New(fault.Conflict, "attempt %d of job %d does not hold allocation %d, to which %d is to be added", a.Attempt, a.Job, a.Adds, a.ID)
	}
	return nil
}

// checkClaims reports what no allocation can be, whatever its nodes are like.
func (a *Allocation) checkClaims() error {
	if a.ID == 0 || a.ID > Last {
		return fault.New(fault.Invalid, "allocation %d: such a number is never given", a.ID)
	}
	if len(a.Claims) == 0 {
		return fault.New(fault.Invalid, "allocation %d claims nothing", a.ID)
	}
	if a.Status != "" && a.Status != Held && a.Status != Uncertain {
		return fault.New(fault.Invalid, "allocation %d has status %q", a.ID, a.Status)
	}
	for _, c := range a.Claims {
		if hasNegative(c.Take) || c.Tasks < 0 || c.Group < 0 {
			return fault.New(fault.Invalid, "allocation %d claims less than nothing of node %s", a.ID, c.Node)
		}
		for i, x := range c.Devices {
			if x.Share < 0 || x.Share > resource.WholeDevice && x.Bytes == 0 || x.Bytes < 0 {
				return fault.New(fault.Invalid, "allocation %d claims %d thousandths of device %d of node %s", a.ID, x.Share, x.Index, c.Node)
			}
			if i > 0 && c.Devices[i-1].Index >= x.Index {
				return fault.New(fault.Invalid, "allocation %d claims device %d of node %s after device %d", a.ID, x.Index, c.Node, c.Devices[i-1].Index)
			}
		}
	}
	return nil
}

// hasNegative reports whether any amount is below zero: such a claim would free what
// others hold.
func hasNegative(v resource.Vector) bool {
	return v.CPU < 0 || v.Memory < 0 || v.Disk < 0 ||
		slices.ContainsFunc(v.Named, func(x resource.Named) bool { return x.Amount < 0 })
}

// Hold adds an allocation after verifying it.
func (l *Ledger) Hold(a Allocation) error {
	if err := l.Verify(&a); err != nil {
		return err
	}
	return l.Restore(a)
}

// Restore adds an allocation that the journal proves to have been held, without
// asking whether its nodes would take it today.
func (l *Ledger) Restore(a Allocation) error {
	if err := a.checkClaims(); err != nil {
		return err
	}
	if l.live[a.ID] != nil {
		return fault.New(fault.Conflict, "allocation number %d is taken", a.ID)
	}
	if err := l.checkKind(&a); err != nil {
		return err
	}
	a.Claims = slices.Clone(a.Claims)
	if a.Status == "" {
		a.Status = Held
	}
	l.live[a.ID] = &a
	if a.Adds == 0 {
		l.byJob[a.Job] = a.ID
	} else {
		l.added[a.Adds]++
	}
	l.next = max(l.next, a.ID+1)
	l.applyAllocation(&a, 1)
	return nil
}

// MarkUncertain notes that nobody can prove what lives on an allocation.
func (l *Ledger) MarkUncertain(id ID, uncertain bool) error {
	a := l.live[id]
	if a == nil {
		return fault.New(fault.NotFound, "allocation %d is not live", id)
	}
	a.Status = Held
	if uncertain {
		a.Status = Uncertain
	}
	return nil
}

// Park notes that the work of an allocation is suspended to make room, or is to go on. It
// can go on only where all that it claims is free again: fault.Conflict says what is not.
func (l *Ledger) Park(id ID, on bool) error {
	a := l.live[id]
	switch {
	case a == nil:
		return fault.New(fault.NotFound, "allocation %d is not live", id)
	case a.Parked == on:
		return nil
	}
	l.applyAllocation(a, -1)
	a.Parked = on
	l.applyAllocation(a, 1)
	if on {
		return nil
	}
	for i := range a.Claims {
		if err := l.node(l.claimNode(a, &a.Claims[i])).checkClaim(&a.Claims[i]); err != nil {
			l.applyAllocation(a, -1)
			a.Parked = true
			l.applyAllocation(a, 1)
			return err
		}
	}
	return nil
}

// checkClaim reports what a claim that is counted on a node exceeds there. What the node has
// no longer is not looked at: the work is there.
func (n *node) checkClaim(c *fleet.Claim) error {
	if n.known && n.used.CPU > n.Capacity.CPU && c.Take.CPU > 0 {
		return fault.New(fault.Conflict, "node %s lacks %d of cpu", n.Name, n.used.CPU-n.Capacity.CPU)
	}
	for _, d := range c.Devices {
		i := slices.IndexFunc(n.Devices, func(dev fleet.Device) bool { return dev.Index == d.Index })
		if h := n.shares[d.Index]; h.share > resource.WholeDevice || i >= 0 && h.bytes > 0 && h.exceedsMemory(n.Devices[i].Memory) {
			return fault.New(fault.Conflict, "device %d of node %s is taken", d.Index, n.Name)
		}
	}
	if c.Whole && len(n.holds) > 1 {
		return fault.New(fault.Conflict, "node %s is not free as a whole", n.Name)
	}
	return nil
}

// countedClaim is what an allocation holds of a claim now.
func (a *Allocation) countedClaim(c fleet.Claim) fleet.Claim {
	if a.Parked {
		c.Take.CPU, c.Devices, c.Whole = 0, nil, false
	}
	return c
}

// Free ends an allocation. The caller has the proof; the attempt fences late
// words: a proof for another attempt than the one that holds is fault.Conflict.
func (l *Ledger) Free(id ID, attempt uint32) error {
	a := l.live[id]
	if a == nil {
		return fault.New(fault.NotFound, "allocation %d is not live", id)
	}
	if a.Attempt != attempt {
		return fault.New(fault.Conflict, "allocation %d is held by attempt %d, not %d", id, a.Attempt, attempt)
	}
	if n := l.added[id]; n > 0 {
		return fault.New(fault.Conflict, "allocation %d is not free: %d that were added to it are held", id, n)
	}
	l.applyAllocation(a, -1)
	delete(l.live, id)
	if a.Adds == 0 {
		delete(l.byJob, a.Job)
	} else if l.added[a.Adds]--; l.added[a.Adds] == 0 {
		delete(l.added, a.Adds)
	}
	return nil
}

func (l *Ledger) applyAllocation(a *Allocation, sign int) {
	for i := range a.Claims {
		l.countClaim(a, a.Claims[i], sign)
	}
}

// countClaim counts one claim as held (sign 1) or as given back (-1).
func (l *Ledger) countClaim(a *Allocation, c fleet.Claim, sign int) {
	n := l.node(l.claimNode(a, &c))
	c = a.countedClaim(c)
	n.used = n.used.Add(c.Take.Scale(sign))
	for _, d := range c.Devices {
		d.Share, d.Bytes = d.Share*resource.Share(sign), d.Bytes*resource.Amount(sign)
		n.shares[d.Index] = n.shares[d.Index].addDevice(d)
		if n.shares[d.Index] == (held{}) {
			delete(n.shares, d.Index)
		}
	}
	n.holds[a.ID] += sign
	if n.holds[a.ID] == 0 {
		delete(n.holds, a.ID)
	}
	if c.Whole {
		n.whole = 0
		if sign > 0 {
			n.whole = a.ID
		}
	}
}

// Skip sees to it that the next allocation has at least a number.
func (l *Ledger) Skip(next ID) { l.next = max(l.next, next) }

// Used returns what is taken of a node and the shares that are held of its devices,
// by index; bytes of their memory count as shares, rounded up. The map is a copy.
func (l *Ledger) Used(k fleet.NodeKey) (resource.Vector, map[int]resource.Share) {
	n, ok := l.nodes.Get(k)
	if !ok {
		return resource.Vector{}, nil
	}
	out := make(map[int]resource.Share, len(n.shares))
	for index, h := range n.shares {
		if out[index] = h.share; h.bytes > 0 {
			i := slices.IndexFunc(n.Devices, func(d fleet.Device) bool { return d.Index == index })
			memory := resource.Amount(0)
			if i >= 0 {
				memory = n.Devices[i].Memory
			}
			out[index] = min(h.share+resource.ShareOf(h.bytes, memory), resource.WholeDevice)
		}
	}
	return n.used, out
}

// Of returns the allocation that a job holds; Get finds those that were added to it.
func (l *Ledger) Of(j job.ID) (Allocation, bool) {
	id, ok := l.byJob[j]
	if !ok {
		return Allocation{}, false
	}
	return *l.live[id], true
}

// Get returns a live allocation.
func (l *Ledger) Get(id ID) (Allocation, bool) {
	a, ok := l.live[id]
	if !ok {
		return Allocation{}, false
	}
	return *a, true
}

// Live lists the live allocations by number.
func (l *Ledger) Live() []Allocation {
	out := make([]Allocation, 0, len(l.live))
	for _, a := range l.live {
		out = append(out, *a)
	}
	slices.SortFunc(out, func(a, b Allocation) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Check recomputes everything from the live allocations and reports the first
// invariant that does not hold. Nodes that shrank or vanished below what is held
// on them are not an error of the ledger.
func (l *Ledger) Check() error {
	fresh := New()
	fresh.there = l.there
	added := 0
	for _, a := range l.Live() { // what is added has a larger number
		base := a.ID
		if a.Adds != 0 {
			base = a.Adds
			added++
		}
		if l.byJob[a.Job] != base {
			return fmt.Errorf("job %d does not point at allocation %d", a.Job, a.ID)
		}
		if err := fresh.Restore(a); err != nil {
			return err
		}
	}
	if len(l.byJob)+added != len(l.live) || !maps.Equal(l.added, fresh.added) {
		return fmt.Errorf("%d jobs hold %d allocations", len(l.byJob), len(l.live))
	}
	for _, k := range l.nodes.Keys() {
		if err := l.node(k).checkSums(fresh.node(k)); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) checkSums(want *node) error {
	if d := n.used.Sub(want.used); !d.IsZero() {
		return fmt.Errorf("node %s: counted use differs from its claims by %+v", n.Name, d)
	}
	if n.whole != want.whole {
		return fmt.Errorf("node %s: held whole by %d, claims say %d", n.Name, n.whole, want.whole)
	}
	if n.whole != 0 && len(n.holds) != 1 {
		return fmt.Errorf("node %s: held whole by %d and by %d others", n.Name, n.whole, len(n.holds)-1)
	}
	for i, s := range n.shares {
		if s != want.shares[i] || s.share < 0 || s.share > resource.WholeDevice || s.bytes < 0 {
			return fmt.Errorf("node %s device %d: %+v is held, claims say %+v", n.Name, i, s, want.shares[i])
		}
	}
	return nil
}
