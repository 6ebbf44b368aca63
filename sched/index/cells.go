package index

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Cell is a set of nodes that are alike to every request: of one class, with as
// much free. What one of them can take, each of them can, so that a question about
// the fleet is asked once for each cell and not for each node. A fleet of many
// nodes has few cells: most nodes are empty, full, or held by one of few shapes.
type Cell struct {
	ID    int32
	Class int32
	Pos   int // a node of the class
	Row   Row // as on each member, but for which of equal devices are held
	N     int // members

	pages []page // sorted by number
	rank  rank
	live  bool
}

// page is up to 64 nodes of one leaf, those of them that belong to a cell.
type page struct {
	no   int32
	mask uint64
}

// rank orders cells by preference: nodes in use before empty ones, then those with
// the fewest free devices and CPUs.
type rank struct {
	empty, devices int
	cpu            resource.Amount
}

func (a rank) compareRank(b rank) int {
	return cmp.Or(cmp.Compare(a.empty, b.empty), cmp.Compare(a.devices, b.devices), cmp.Compare(a.cpu, b.cpu))
}

// Cells keeps the nodes of a state in cells. It follows the state: Update after
// each change of a row. It is good until the table changes.
type Cells struct {
	t    *Table
	s    *State
	of   []int32 // by position; -1: the node is not up
	all  []*Cell
	ids  map[string]int32
	live []*Cell // those with members, by preference
	buf  []byte

	having  [MaxDevices + 1]int // nodes by how many devices are free as a whole
	most    int                 // the largest index of having that is not 0
	devices int                 // free as a whole, on all nodes
}

// NewCells sorts the nodes of a state into cells.
func NewCells(t *Table, s *State) *Cells {
	t.renewDerived()
	c := &Cells{t: t, s: s, of: make([]int32, t.Len()), ids: map[string]int32{}}
	for pos := range c.of {
		c.of[pos] = -1
		c.Update(pos)
	}
	return c
}

// Len is how many cells are known, those without members among them. Cells are
// numbered from 0.
func (c *Cells) Len() int { return len(c.all) }

// Cell returns a cell by its number.
func (c *Cells) Cell(id int32) *Cell { return c.all[id] }

// Of returns the cell of a node, or -1 if the node is not up.
func (c *Cells) Of(pos int) int32 { return c.of[pos] }

// Live lists the cells with members by preference; it is not to be changed.
func (c *Cells) Live() []*Cell { return c.live }

// Crowded reports whether so many cells without members are known that it pays to
// begin anew.
func (c *Cells) Crowded() bool { return len(c.all) > 4096+4*c.t.Len() }

// Update puts a node into the cell that its row belongs to and reports whether
// that is another one.
func (c *Cells) Update(pos int) bool {
	next := int32(-1)
	if c.t.nodes[pos].State == fleet.Up {
		next = c.Intern(pos, &c.s.rows[pos])
	}
	if next == c.of[pos] {
		return false
	}
	no, slot := c.t.page[pos].no, c.t.page[pos].slot
	if old := c.of[pos]; old >= 0 {
		c.all[old].leavePage(no, slot)
		c.countMember(c.all[old], -1)
		if c.all[old].N == 0 {
			c.removeLive(c.all[old])
		}
	}
	c.of[pos] = next
	if next >= 0 {
		c.all[next].joinPage(no, slot)
		c.countMember(c.all[next], 1)
		c.addLive(c.all[next])
	}
	return true
}

// countMember notes that a cell has one member more or less.
func (c *Cells) countMember(x *Cell, n int) {
	d := x.rank.devices
	c.having[d] += n
	c.devices += n * d
	if n > 0 {
		c.most = max(c.most, d)
	}
	for c.most > 0 && c.having[c.most] == 0 {
		c.most--
	}
}

// Devices says how many devices are free as a whole: on the node that has most of
// them, and on all nodes that are up. What asks for more cannot be placed.
func (c *Cells) Devices() (most, all int) { return c.most, c.devices }

// Intern returns the cell that a row of a node belongs to, whether or not the node
// is like that now.
func (c *Cells) Intern(pos int, r *Row) int32 {
	class := c.t.class[pos]
	c.buf = r.rowKey(class, c.t.classes[class], c.buf[:0])
	if id, ok := c.ids[string(c.buf)]; ok {
		return id
	}
	cell := &Cell{ID: int32(len(c.all)), Class: class, Pos: pos, Row: *r}
	cell.rank = rank{devices: r.Devices.Len(), cpu: r.Free.CPU}
	if r.Holds == 0 {
		cell.rank.empty = 1
	}
	c.all = append(c.all, cell)
	c.ids[string(c.buf)] = cell.ID
	return cell.ID
}

func (c *Cells) placeCell(x *Cell) int {
	return sort.Search(len(c.live), func(i int) bool {
		l := c.live[i]
		return cmp.Or(l.rank.compareRank(x.rank), cmp.Compare(l.ID, x.ID)) >= 0
	})
}

func (c *Cells) addLive(x *Cell) {
	if !x.live {
		x.live = true
		c.live = slices.Insert(c.live, c.placeCell(x), x)
	}
}

func (c *Cells) removeLive(x *Cell) {
	i := c.placeCell(x)
	c.live = slices.Delete(c.live, i, i+1)
	x.live = false
}

func (x *Cell) findPage(no int32) (int, bool) {
	lo, hi := 0, len(x.pages)
	for lo < hi {
		if m := (lo + hi) / 2; x.pages[m].no < no {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo, lo < len(x.pages) && x.pages[lo].no == no
}

func (x *Cell) joinPage(no int32, slot uint8) {
	i, found := x.findPage(no)
	if !found {
		x.pages = slices.Insert(x.pages, i, page{no: no})
	}
	x.pages[i].mask |= 1 << slot
	x.N++
}

func (x *Cell) leavePage(no int32, slot uint8) {
	i, _ := x.findPage(no)
	x.pages[i].mask &^= 1 << slot
	if x.pages[i].mask == 0 {
		x.pages = slices.Delete(x.pages, i, i+1)
	}
	x.N--
}

// SameRank reports whether two cells are preferred alike.
func (x *Cell) SameRank(y *Cell) bool { return x.rank == y.rank }

// Pages calls f with each page that has members of the cell outside avoid (by page
// number; nil: none), in order, until it returns false.
func (x *Cell) Pages(avoid []uint64, f func(no int32, mask uint64) bool) {
	for _, p := range x.pages {
		if avoid != nil {
			p.mask &^= avoid[p.no]
		}
		if p.mask != 0 && !f(p.no, p.mask) {
			return
		}
	}
}

// On returns the members of the cell on one page.
func (x *Cell) On(no int32) uint64 {
	if i, found := x.findPage(no); found {
		return x.pages[i].mask
	}
	return 0
}

// Count is how many members the cell has outside avoid.
func (x *Cell) Count(avoid []uint64) int {
	if avoid == nil {
		return x.N
	}
	n := 0
	for _, p := range x.pages {
		n += bits.OnesCount64(p.mask &^ avoid[p.no])
	}
	return n
}

// Leaf is a set of nodes with one topology path. Its pages follow each other.
type Leaf struct {
	From, To int32 // its pages: From ≤ number < To
	Domains  []int // outermost first; empty: no path known
}

// Page is up to 64 nodes of one leaf.
type Page struct {
	Leaf  int32
	Nodes []int32 // positions by slot, ascending
}

// Leaves lists the leaves, in the order of their first nodes.
func (t *Table) Leaves() []Leaf { t.renewDerived(); return t.leaves }

// Pages lists all pages: by leaf, and within one in node order.
func (t *Table) Pages() []Page { t.renewDerived(); return t.pages }

// PageOf returns the page and the slot of a node.
func (t *Table) PageOf(pos int) (no int32, slot uint8) { return t.page[pos].no, t.page[pos].slot }

// Class returns the class of a node.
func (t *Table) Class(pos int) int32 { t.renewDerived(); return t.class[pos] }

// Classes lists the classes by number.
func (t *Table) Classes() []*Class { t.renewDerived(); return t.classes }

// DomainCount is how many topology domains there are, of all levels; they are
// numbered from 0.
func (t *Table) DomainCount() int { t.renewDerived(); return len(t.domains) }

type slot struct {
	no   int32
	slot uint8
}

// buildPages divides the nodes into classes and pages.
func (t *Table) buildPages() {
	ids := map[string]int32{}
	t.class, t.classes = make([]int32, len(t.nodes)), nil
	for i, n := range t.nodes {
		id, ok := ids[n.sign]
		if !ok {
			id = int32(len(t.classes))
			ids[n.sign] = id
			t.classes = append(t.classes, newClass(n))
		}
		t.class[i] = id
	}
	known := map[int]int{}
	var members [][]int32
	for i, n := range t.nodes {
		leaf := -1
		if len(n.Domains) > 0 {
			leaf = n.Domains[len(n.Domains)-1]
		}
		k, ok := known[leaf]
		if !ok {
			k = len(members)
			known[leaf] = k
			members = append(members, nil)
		}
		members[k] = append(members[k], int32(i))
	}
	t.page, t.pages, t.leaves = make([]slot, len(t.nodes)), nil, nil
	for _, m := range members {
		leaf := Leaf{From: int32(len(t.pages)), Domains: t.nodes[m[0]].Domains}
		for len(m) > 0 {
			k := min(len(m), 64)
			for s, pos := range m[:k] {
				t.page[pos] = slot{int32(len(t.pages)), uint8(s)}
			}
			t.pages = append(t.pages, Page{Leaf: int32(len(t.leaves)), Nodes: m[:k]})
			m = m[k:]
		}
		leaf.To = int32(len(t.pages))
		t.leaves = append(t.leaves, leaf)
	}
}
