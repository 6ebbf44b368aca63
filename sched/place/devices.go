package place

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/resource"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/topo"
)

// want is a need of devices on one node.
type want struct {
	mask  index.Set // devices of the node that match
	count int
	share resource.Share
}

// maxWants bounds the different device requests that may meet on one node; more
// are treated as not servable. The test of all their subsets stays small so.
const maxWants = 12

// servable reports whether the node's free devices serve all wants at once.
// Undivided devices are matched exactly; shares are packed onto devices that are
// shared already, then onto free ones.
func servable(row *index.Row, usable index.Set, wants []want) bool {
	if len(wants) == 1 && wants[0].share == resource.WholeDevice {
		return wants[0].mask.And(row.Devices).Len() >= wants[0].count
	}
	whole, _ := undivided(row, usable, wants)
	return enough(row.Devices, whole)
}

// undivided turns all wants into wants of free devices: shares count as the
// devices that have to be opened for them. It also says how many units of each
// want the shared devices take.
func undivided(row *index.Row, usable index.Set, wants []want) (whole []want, packed []units) {
	var parts []index.Part
	order := make([]int, len(wants))
	for i := range wants {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(wants[b].share, wants[a].share) })
	for _, i := range order {
		w := wants[i]
		if w.share == resource.WholeDevice {
			whole = append(whole, w)
			continue
		}
		if parts == nil {
			parts = slices.Clone(row.Parts)
		}
		left := w.count
		for left > 0 {
			p := tightest(parts, usable.And(w.mask).Minus(row.Full), w.share)
			if p < 0 {
				break
			}
			parts[p].Held += w.share
			packed = append(packed, units{parts[p].Pos, w.share})
			left--
		}
		per := int(resource.WholeDevice / w.share)
		w.count = (left + per - 1) / per
		whole = append(whole, want{mask: w.mask, count: w.count, share: w.share})
	}
	return whole, packed
}

// units is a share put on a device.
type units struct {
	pos   int
	share resource.Share
}

// tightest finds the shared device with the least left that still takes a share.
func tightest(parts []index.Part, allowed index.Set, share resource.Share) int {
	best := -1
	for i, p := range parts {
		if !allowed.Has(p.Pos) || p.Held+share > resource.WholeDevice {
			continue
		}
		if best < 0 || p.Held > parts[best].Held {
			best = i
		}
	}
	return best
}

// enough is Hall's condition: every subset of the wants finds as many free
// devices as it asks for. It holds exactly if all can be served together.
func enough(free index.Set, wants []want) bool {
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

// assign chooses the devices that serve the wants, which must be servable.
func assign(n *index.Node, row *index.Row, wants []want) []fleet.DeviceClaim {
	whole, packed := undivided(row, n.Usable, wants)
	held := map[int]resource.Share{}
	for _, u := range packed {
		held[u.pos] += u.share
	}
	left := map[resource.Share]int{} // units per share size that go onto opened devices
	for _, w := range wants {
		left[w.share] += w.count
	}
	for _, u := range packed {
		left[u.share]--
	}
	slices.SortStableFunc(whole, func(a, b want) int {
		return cmp.Compare(a.mask.And(row.Devices).Len(), b.mask.And(row.Devices).Len())
	})
	free := row.Devices
	for i, w := range whole {
		set := pickOne(n.Devices, free, w, whole[i+1:])
		free = free.Minus(set)
		for _, p := range set.Positions() {
			if w.share == resource.WholeDevice {
				held[p] = resource.WholeDevice
				continue
			}
			for held[p]+w.share <= resource.WholeDevice && left[w.share] > 0 {
				held[p] += w.share
				left[w.share]--
			}
		}
	}
	return claims(n, held)
}

// pickOne chooses the devices of one want so that the others can still be served.
func pickOne(devices []fleet.Device, free index.Set, w want, rest []want) index.Set {
	if set, ok := topo.Pick(devices, free.And(w.mask), w.count); ok && enough(free.Minus(set), rest) {
		return set
	}
	var set index.Set
	for _, p := range free.And(w.mask).Positions() {
		if w.count == 0 {
			break
		}
		w.count--
		if enough(free.Without(p), append([]want{w}, rest...)) {
			set, free = set.With(p), free.Without(p)
			continue
		}
		w.count++
	}
	return set
}

func claims(n *index.Node, held map[int]resource.Share) []fleet.DeviceClaim {
	out := make([]fleet.DeviceClaim, 0, len(held))
	for p, share := range held {
		out = append(out, fleet.DeviceClaim{Index: n.Devices[p].Index, Share: share})
	}
	slices.SortFunc(out, func(a, b fleet.DeviceClaim) int { return cmp.Compare(a.Index, b.Index) })
	if len(out) == 0 {
		return nil
	}
	return out
}
