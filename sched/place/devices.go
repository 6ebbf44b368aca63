package place

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/topo"
)

// want is a need of devices on one node.
type want struct {
	mask  index.Set // devices of the node that match
	count int
	share resource.Share
	bytes resource.Amount // of each device's memory; 0: share says how much
	of    int             // the want of shares for which whole devices are opened
}

// isWhole reports whether undivided devices are wanted.
func (w *want) isWhole() bool { return w.bytes == 0 && w.share == resource.WholeDevice }

// loadOf is what one unit takes of a device.
func (w *want) loadOf(d *fleet.Device) resource.Amount {
	return resource.Load(d.Memory, w.share, w.bytes)
}

// unitsPerDevice is how many units a free device takes.
func (w *want) unitsPerDevice(d *fleet.Device) int {
	return int(resource.FullLoad(d.Memory) / w.loadOf(d))
}

// maxWants bounds the different device requests that may meet on one node; more
// are treated as not servable. The test of all their subsets stays small so.
const maxWants = 12

// canServe reports whether the node's free devices serve all wants at once.
// Undivided devices are matched exactly; shares are packed onto devices that are
// shared already, then onto free ones.
func canServe(n *index.Node, row *index.Row, usable index.Set, wants []want) bool {
	if len(wants) == 1 && wants[0].isWhole() {
		return wants[0].mask.And(row.Devices).Len() >= wants[0].count
	}
	whole, _ := asUndivided(n, row, usable, wants)
	return canServeTogether(row.Devices, whole)
}

// asUndivided turns all wants into wants of free devices: shares count as the
// devices that have to be opened for them. It also says how many units of each
// want the shared devices take.
func asUndivided(n *index.Node, row *index.Row, usable index.Set, wants []want) (whole []want, packed []units) {
	var parts []index.Part
	order := make([]int, len(wants))
	for i := range wants {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(wants[b].bytes, wants[a].bytes), cmp.Compare(wants[b].share, wants[a].share))
	})
	for _, i := range order {
		w := wants[i]
		if w.isWhole() {
			whole = append(whole, w)
			continue
		}
		if parts == nil {
			parts = slices.Clone(row.Parts)
		}
		left := w.count
		for left > 0 {
			p := tightestShared(n.Devices, parts, usable.And(w.mask).Minus(row.Full), &w)
			if p < 0 {
				break
			}
			parts[p].Held += w.loadOf(&n.Devices[parts[p].Pos])
			packed = append(packed, units{parts[p].Pos, i})
			left--
		}
		w.of, w.count = i, left
		whole = append(whole, w.devicesToOpen(n.Devices, row.Devices)...)
	}
	return whole, packed
}

// devicesToOpen says which free devices are opened for units that no shared one takes, as few
// as can be: of those that take most all, and one of the smallest that takes the rest.
func (w want) devicesToOpen(devices []fleet.Device, free index.Set) []want {
	if w.bytes == 0 {
		per := int(resource.WholeDevice / w.share)
		w.count = (w.count + per - 1) / per
		return []want{w}
	}
	var sizes []int // units that a device takes, the largest first
	alike := map[int]index.Set{}
	for _, p := range free.And(w.mask).Positions() {
		per := w.unitsPerDevice(&devices[p])
		if _, known := alike[per]; !known {
			sizes = append(sizes, per)
		}
		alike[per] = alike[per].With(p)
	}
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	opened := make([]int, len(sizes))
	for w.count > 0 {
		next := -1
		for i, per := range sizes {
			if opened[i] < alike[per].Len() && (next < 0 || per >= w.count) {
				next = i
			}
		}
		if next < 0 {
			return []want{{mask: w.mask, count: free.Len() + 1}} // there are too few
		}
		opened[next]++
		w.count -= sizes[next]
	}
	var out []want
	for i, n := range opened {
		if n > 0 {
			out = append(out, want{alike[sizes[i]], n, w.share, w.bytes, w.of})
		}
	}
	return out
}

// units is a unit of a want put on a device.
type units struct{ pos, want int }

// tightestShared finds the shared device with the least left, in thousandths, that still
// takes a unit.
func tightestShared(devices []fleet.Device, parts []index.Part, allowed index.Set, w *want) int {
	best, least := -1, resource.Amount(0)
	for i, p := range parts {
		if !allowed.Has(p.Pos) {
			continue
		}
		d := &devices[p.Pos]
		left := resource.FullLoad(d.Memory) - p.Held
		if left < w.loadOf(d) {
			continue
		}
		if left = inThousandths(d, left); best < 0 || left < least {
			best, least = i, left
		}
	}
	return best
}

// inThousandths is a load of a device in thousandths of it, rounded down.
func inThousandths(d *fleet.Device, load resource.Amount) resource.Amount {
	return load / resource.Load(d.Memory, 1, 0)
}

// canServeTogether is Hall's condition: every subset of the wants finds as many free
// devices as it asks for. It holds exactly if all can be served together.
func canServeTogether(free index.Set, wants []want) bool {
	if len(wants) > maxWants {
		return false
	}
	for subset := 1; subset < 1<<len(wants); subset++ {
		var reach index.Set
		n := 0
		for i, w := range wants {
			if subset>>i&1 == 1 {
				reach = reach.Union(w.mask)
				n += w.count
			}
		}
		if n > 0 && reach.And(free).Len() < n {
			return false
		}
	}
	return true
}

// assignDevices chooses the devices that serve the wants, which must be servable.
func assignDevices(n *index.Node, row *index.Row, wants []want) []fleet.DeviceClaim {
	whole, packed := asUndivided(n, row, n.Usable, wants)
	held := map[int]fleet.DeviceClaim{}
	left := make([]int, len(wants)) // units that go onto opened devices
	for i, w := range wants {
		left[i] = w.count
	}
	for _, u := range packed {
		giveUnit(held, u.pos, &wants[u.want])
		left[u.want]--
	}
	slices.SortStableFunc(whole, func(a, b want) int {
		return cmp.Compare(a.mask.And(row.Devices).Len(), b.mask.And(row.Devices).Len())
	})
	free := row.Devices
	for i, w := range whole {
		set := pickOne(n.Devices, free, w, whole[i+1:])
		free = free.Minus(set)
		for _, p := range set.Positions() {
			if w.isWhole() {
				held[p] = fleet.DeviceClaim{Share: resource.WholeDevice}
				continue
			}
			room, load := resource.FullLoad(n.Devices[p].Memory), w.loadOf(&n.Devices[p])
			for load <= room && left[w.of] > 0 {
				giveUnit(held, p, &w)
				room -= load
				left[w.of]--
			}
		}
	}
	return deviceClaims(n, held)
}

// giveUnit puts one unit of a want on a device.
func giveUnit(held map[int]fleet.DeviceClaim, pos int, w *want) {
	c := held[pos]
	c.Share, c.Bytes = c.Share+w.share, c.Bytes+w.bytes
	held[pos] = c
}

// pickOne chooses the devices of one want so that the others can still be served.
func pickOne(devices []fleet.Device, free index.Set, w want, rest []want) index.Set {
	if set, ok := topo.Pick(devices, free.And(w.mask), w.count); ok && canServeTogether(free.Minus(set), rest) {
		return set
	}
	var set index.Set
	for _, p := range free.And(w.mask).Positions() {
		if w.count == 0 {
			break
		}
		w.count--
		if canServeTogether(free.Without(p), append([]want{w}, rest...)) {
			set, free = set.With(p), free.Without(p)
			continue
		}
		w.count++
	}
	return set
}

func deviceClaims(n *index.Node, held map[int]fleet.DeviceClaim) []fleet.DeviceClaim {
	out := make([]fleet.DeviceClaim, 0, len(held))
	for p, c := range held {
		c.Index = n.Devices[p].Index
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b fleet.DeviceClaim) int { return cmp.Compare(a.Index, b.Index) })
	if len(out) == 0 {
		return nil
	}
	return out
}
