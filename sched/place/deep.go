package place

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// Bounds of the deep search: it is for gangs of several groups on a few nodes,
// where one division that was chosen for its looks can shut out another group.
const (
	deepNodes = 32
	deepSteps = 20_000
)

// deep tries every division of every group over the nodes until the steps are used up.
type deep struct {
	*search
	state *index.State // changed and changed back
	left  int
	found []fleet.Claim
}

// searchDeeply searches for a gang that the quick search did not place.
func (p *search) searchDeeply(s *index.State) []fleet.Claim {
	if p.t.Len() > deepNodes {
		return nil
	}
	for i := range p.shape.Groups {
		if newView(p.t, s, &p.shape.Groups[i], p.ideal).tooFull() {
			return nil
		}
	}
	d := &deep{search: p, state: s.Clone(), left: deepSteps}
	if !d.searchGroup(0) {
		return nil
	}
	return d.found
}

func (d *deep) searchGroup(i int) bool {
	if i == len(d.shape.Groups) {
		return true
	}
	g := &d.shape.Groups[i]
	w := d.at
	alternatives := [][]string{nil}
	if g.Same {
		alternatives = g.Alternatives
	}
	for _, w.features = range alternatives {
		v := newView(d.t, d.state, g, d.ideal)
		c := v.listCandidates(&w)
		room := make([]int, len(c)+1) // tasks that the candidates from here on could run
		for k := len(c) - 1; k >= 0; k-- {
			room[k] = room[k+1] + c[k].tasks
		}
		if v.hasMust(c) && d.divideFrom(&division{v: v, c: c, group: i, room: room}, 0) {
			return true
		}
	}
	return false
}

// division is a division of one group in the making.
type division struct {
	v          *view
	c          []candidate
	room       []int
	group      int
	used       []portion
	sum, extra int
}

// divideFrom decides what the candidates from k on take.
func (d *deep) divideFrom(x *division, k int) bool {
	if d.left--; d.left < 0 {
		return false
	}
	g := x.v.g
	if k == len(x.c) {
		return x.isComplete() && d.searchGroup(x.group+1)
	}
	if g.Each == 0 && x.sum+x.room[k] < g.Least || g.MaxNodes > 0 && len(x.used) > g.MaxNodes {
		return false
	}
	for t := x.c[k].tasks; t >= 0; t-- {
		if g.Each > 0 && t != g.Each || g.Each == 0 && x.sum+t > g.Want {
			continue
		}
		for e := min(x.c[k].extra, g.TotalCount()-x.extra); e >= 0; e-- {
			if d.giveCandidate(x, k, t, e) {
				return true
			}
		}
	}
	if slices.ContainsFunc(g.Must, d.t.Node(x.c[k].pos).Is) {
		return false
	}
	return d.divideFrom(x, k+1)
}

// giveCandidate lets one candidate take part and goes on.
func (d *deep) giveCandidate(x *division, k, tasks, extra int) bool {
	p := portion{pos: x.c[k].pos, tasks: tasks}
	if n := len(x.v.g.TotalDevices); n == 1 {
		p.extra = []int{extra}
	} else if n > 1 {
		return false
	}
	if !x.v.nodeFits(p.pos, tasks, p.extra) {
		return false
	}
	claim, row := x.v.claimPortion(x.group, p), *d.state.Row(p.pos)
	d.state.Take(d.t, []fleet.Claim{claim})
	d.found = append(d.found, claim)
	x.used, x.sum, x.extra = append(x.used, p), x.sum+tasks, x.extra+extra
	if d.divideFrom(x, k+1) {
		return true
	}
	x.used, x.sum, x.extra = x.used[:len(x.used)-1], x.sum-tasks, x.extra-extra
	d.found = d.found[:len(d.found)-1]
	d.state.Put(p.pos, &row) // as it was: what is released is free but for foreign use, which an ideal state does not know
	return false
}

// isComplete reports whether a finished division is what the group asks for.
func (x *division) isComplete() bool {
	g, n := x.v.g, len(x.used)
	if n < g.MinNodes || g.MaxNodes > 0 && n > g.MaxNodes || x.extra != g.TotalCount() || !g.Total.IsZero() {
		return false
	}
	if g.Each == 0 && (x.sum < g.Least || x.sum < n && n > max(g.MinNodes, g.TotalCount())) {
		return false
	}
	for i, p := range x.used {
		switch {
		case g.Each == 0 && (p.tasks == 0 && x.sum >= n || p.tasks > 1 && x.sum < n),
			g.TotalCount() >= n && sumOf(p.extra) == 0 && g.TotalCount() > 0,
			g.Adjoint && i > 0 && p.pos != x.used[i-1].pos+1:
			return false
		}
	}
	return x.v.standTogether(x.used)
}
