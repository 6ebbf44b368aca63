package demand

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
)

// pool is a pool while a decision is made.
type pool struct {
	rules    *account.HandoverPool
	machines []*Machine // its own, without those on the way from it or chosen to go
	coming   []*Machine // on the way to it or chosen for it; they are empty when they come
	wants    []*Want
	gave     bool // a machine of it was chosen to go
	got      bool // one was chosen for it
	known    map[room]lack
	needs    []Need
}

// room is what a machine can take.
type room struct {
	free, units int
	soon        time.Duration
}

// machineCount is how many machines the pool has, with those that come.
func (p *pool) machineCount() int { return len(p.machines) + len(p.coming) }

// comingUnits is the units of the machines that come.
func (p *pool) comingUnits() (n int) {
	for _, m := range p.coming {
		n += m.Units
	}
	return n
}

// gets reports whether a machine of another pool comes.
func (p *pool) gets(from string) bool {
	return slices.ContainsFunc(p.coming, func(m *Machine) bool { return m.Pool == from })
}

// freeUnits is what of a machine nobody holds.
func (m *Machine) freeUnits() int {
	n := m.Units
	for i := range m.Runs {
		n -= m.Runs[i].Units
	}
	if m.Away {
		return 0
	}
	return max(n, 0)
}

// lack is work of a pool that has no room there, and what is left of its room beside the other work.
type lack struct {
	units   int // all of it
	jobs    int
	held    int    // requests that wait for it
	service string // the first service that waits; empty: none
	idle    int    // units of whole machines that stay idle
	list    []lacking
}

// lacking is one kind of such work.
type lacking struct {
	units, count int
	saves        time.Duration // by how much one starts earlier on a machine that comes
}

// findLack finds the work that waits in the pool and has no room there without some of its machines
// and without those that come. Work that starts within soon anyway lacks nothing.
func (p *pool) findLack(soon time.Duration, without ...*Machine) lack {
	key := room{soon: soon}
	switch len(without) {
	case 0:
	case 1:
		key = room{without[0].freeUnits(), without[0].Units, soon}
	default:
		return p.computeLack(soon, without)
	}
	known, ok := p.known[key]
	if !ok {
		known = p.computeLack(soon, without)
		if p.known == nil {
			p.known = map[room]lack{}
		}
		p.known[key] = known
	}
	return known
}

func (p *pool) computeLack(soon time.Duration, without []*Machine) lack {
	stay := p.rules.StaysFor()
	free := p.freeRooms(without...)
	var out lack
	for _, w := range p.wants {
		if w.Units <= 0 || w.Count <= 0 {
			continue
		}
		left := w.Count
		for left > 0 && free.placeWork(w.Units) {
			left--
		}
		saves := stay
		if w.Takes > 0 {
			saves = min(saves, w.Takes)
		}
		if w.Wait >= 0 {
			saves = min(saves, w.Wait-soon)
		}
		if left == 0 || saves < time.Second {
			continue
		}
		out.units += left * w.Units
		out.jobs += left
		out.held += w.Held
		out.service = cmp.Or(out.service, w.Service)
		out.list = append(out.list, lacking{w.Units, left, saves})
	}
	for _, f := range free.free {
		if f == free.size {
			out.idle += f
		}
	}
	return out
}

// worthOf is the work that so many units more let start earlier, in unit-seconds without the pool's
// weight: at most what they can do while they stay.
func (l *lack) worthOf(units int, stay time.Duration) int64 {
	most := int64(units) * wholeSeconds(stay)
	var sum int64
	for _, x := range l.list {
		if x.units > units+l.idle {
			continue // it needs more machines
		}
		if sum += int64(x.units) * int64(x.count) * wholeSeconds(x.saves); sum >= most {
			return most
		}
	}
	return sum
}

// worthMore is what so many units more are worth to the pool beside those that come, with its weight.
func (p *pool) worthMore(l *lack, units int) int64 {
	stay, coming := p.rules.StaysFor(), p.comingUnits()
	return int64(float64(l.worthOf(coming+units, stay)-l.worthOf(coming, stay)) * p.rules.Factor())
}

// ownUnits is the units of the machines that the pool has, without those that do not answer.
func (p *pool) ownUnits() (n int) {
	for _, m := range p.machines {
		if !m.Away {
			n += m.Units
		}
	}
	return n
}

// noteNeed notes what the pool needs now.
func (p *pool) noteNeed(now time.Time, lacks int) {
	n := lacks
	for _, m := range p.machines {
		if !m.Away {
			n += m.Units - m.freeUnits()
		}
	}
	stay := p.rules.StaysFor()
	p.needs = slices.DeleteFunc(slices.Clone(p.needs), func(x Need) bool { return x.Units <= n || now.Sub(x.At) >= stay || x.At.After(now) })
	p.needs = append(p.needs, Need{now, n})
}

// lossOf is what a pool loses with some of its machines: work that waits there now, or what it will lack
// if it needs again what it needed at most within its stay.
func (p *pool) lossOf(gone []*Machine) int64 {
	units := 0
	for _, m := range gone {
		units += m.Units
	}
	l := p.findLack(StepsTake, gone...)
	waits := p.worthMore(&l, units)
	short := min(units, p.needs[0].Units-(p.ownUnits()+p.comingUnits()-units))
	return max(waits, int64(float64(int64(max(short, 0))*wholeSeconds(p.rules.StaysFor()))*p.rules.Factor()))
}

// rooms is what is free on each machine, the least first, and how large the largest is.
type rooms struct {
	free []int
	size int
}

func (p *pool) freeRooms(without ...*Machine) *rooms {
	r := &rooms{}
	for _, m := range p.machines {
		r.size = max(r.size, m.Units)
		if !slices.Contains(without, m) {
			r.free = append(r.free, m.freeUnits())
		}
	}
	slices.Sort(r.free)
	return r
}

// placeWork takes room for one piece of work: on the fullest machine that has it, or on whole machines
// and a rest.
func (r *rooms) placeWork(units int) bool {
	if i, _ := slices.BinarySearch(r.free, units); i < len(r.free) {
		r.takeRoom(i, units)
		return true
	}
	if r.size == 0 || units <= r.size {
		return false
	}
	whole, rest := units/r.size, units%r.size
	first := len(r.free) - whole
	if first < 0 || r.free[first] < r.size {
		return false
	}
	others := rooms{free: r.free[:first], size: r.size}
	if rest > 0 && !others.placeWork(rest) {
		return false
	}
	for i := first; i < len(r.free); i++ {
		r.free[i] = 0
	}
	slices.Sort(r.free)
	return true
}

func (r *rooms) takeRoom(i, units int) {
	r.free[i] -= units
	for ; i > 0 && r.free[i] < r.free[i-1]; i-- {
		r.free[i], r.free[i-1] = r.free[i-1], r.free[i]
	}
}

func wholeSeconds(d time.Duration) int64 { return int64(d / time.Second) }
