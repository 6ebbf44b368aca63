package place

import (
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// tooFull reports whether a state is too full for a group whatever its nodes are.
func (v *view) tooFull() bool {
	m := v.s.Summary()
	a, b := v.g.One, v.g.All
	part := v.leastDevices()
	return v.g.OneDevices > m.LargestDevices || v.g.AllDevices > m.AllDevices || part > m.LargestDevices ||
		a.CPU > m.Largest.CPU || a.Memory > m.Largest.Memory || a.Disk > m.Largest.Disk ||
		b.CPU > m.All.CPU || b.Memory > m.All.Memory || b.Disk > m.All.Disk
}

// leastDevices is how many undivided devices the node with most tasks gives at least, for
// a group whose number of nodes is bounded.
func (v *view) leastDevices() int {
	g := v.g
	if g.MaxNodes == 0 || g.Each > 0 || len(g.TotalDevices) > 0 {
		return v.g.OneDevices
	}
	n := (g.Least + g.MaxNodes - 1) / g.MaxNodes
	devices := 0
	for _, d := range g.BaseDevices {
		if d.Undivided() {
			devices += d.Count
		}
	}
	for _, d := range g.StepDevices {
		if d.Undivided() {
			devices += n * d.Count
		}
	}
	return devices
}

// Fits reports whether a gang fits on a state. It answers as Gang does, and
// sooner where no choice has to be made.
func Fits(t *index.Table, s *index.State, shape *class.Shape) bool {
	for ; shape != nil; shape = shape.Else {
		if fitsOne(t, s, shape) {
			return true
		}
	}
	return false
}

func fitsOne(t *index.Table, s *index.State, shape *class.Shape) bool {
	if len(shape.Groups) == 1 {
		v := newView(t, s, &shape.Groups[0], false)
		if v.tooFull() {
			return false
		}
		if v.fitsPlainly(shape) {
			return true
		}
	}
	return placeQuickly(t, s, shape, false) != nil
}

// fitsPlainly reports whether the group certainly fits: enough nodes of one pool and
// partition take an equal part. A false says nothing.
func (v *view) fitsPlainly(shape *class.Shape) bool {
	g := v.g
	if g.Same || g.Adjoint || g.Within != 0 || g.Segment > 0 || g.Switches > 0 || len(g.Must) > 0 || len(g.TotalDevices) > 0 || !g.Total.IsZero() || len(shape.Partitions) > 1 {
		return false
	}
	q := max(g.Each, (g.Least+g.MinNodes-1)/g.MinNodes)
	if g.Cap > 0 && q > g.Cap {
		return false
	}
	w := where{}
	if len(shape.Partitions) == 1 {
		w.partition = shape.Partitions[0]
	}
	for _, w.pool = range v.t.Pools() {
		if !shape.In(w.pool) {
			continue
		}
		left := g.MinNodes
		for pos := 0; pos < v.t.Len() && left > 0; pos++ {
			if v.s.Row(pos).Devices.Len() >= v.g.OneDevices && v.nodeQualifies(pos, &w) && v.nodeFits(pos, q, nil) {
				left--
			}
		}
		if left == 0 {
			return true
		}
	}
	return false
}
