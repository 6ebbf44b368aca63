package place

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/job"
)

// A group may ask for at most so many leaves (sbatch --switches, Slurm's topology.html). A
// node of which no path is known counts as a leaf of its own; in a fleet without any
// path nobody can tell and the bound means nothing.

// maxChoices bounds how many sets of leaves are tried for one number of nodes. What is
// exact for equal parts without it is a search for unlike ones.
const maxChoices = 3000

// leavesOf names each candidate's leaf; those without one have one each.
func (v *view) leavesOf(c []candidate) []int {
	out := make([]int, len(c))
	for i, x := range c {
		out[i] = v.leafOf(x.pos)
	}
	return out
}

func (v *view) leafOf(pos int) int {
	if d := v.domainOf(pos, job.InLeaf); d >= 0 {
		return d
	}
	return -2 - pos
}

// withinLeaves reports whether portions are in as few leaves as the group asks for.
func (v *view) withinLeaves(used []portion) bool {
	if v.t.Levels() == 0 {
		return true
	}
	leaves := map[int]bool{}
	for _, p := range used {
		leaves[v.leafOf(p.pos)] = true
	}
	return len(leaves) <= v.g.Switches
}

// placeOnLeaves places the tasks on exactly n nodes of at most as many leaves as the group
// asks for: where they would go without that bound, else in the fewest leaves, else in
// any set of leaves that takes them.
func (v *view) placeOnLeaves(c []candidate, n, tasks int) []portion {
	g := v.g
	if p := v.placeAllowed(c, n, tasks); p == nil || v.withinLeaves(p) {
		return p
	}
	if g.Within == 0 && !g.Adjoint && (g.Segment == 0 || n > g.Segment) {
		p := v.placeWithin(c, n, tasks)
		if p != nil && v.withinLeaves(p) {
			return p
		}
		if g.Each > 0 && len(g.TotalDevices) == 0 && len(g.Must) == 0 {
			return nil // equal parts were gathered in the fewest leaves that there are
		}
	}
	return v.anyLeaves(c, n, tasks)
}

// leafset is the candidates of one leaf.
type leafset struct {
	c     []candidate
	tasks int
}

// anyLeaves tries sets of leaves, those with most room first.
func (v *view) anyLeaves(c []candidate, n, tasks int) []portion {
	var all []leafset
	at := map[int]int{}
	for i, leaf := range v.leavesOf(c) {
		k, seen := at[leaf]
		if !seen {
			k = len(all)
			at[leaf] = k
			all = append(all, leafset{})
		}
		all[k].c = append(all[k].c, c[i])
		all[k].tasks += c[i].tasks
	}
	slices.SortStableFunc(all, func(a, b leafset) int { return len(b.c) - len(a.c) })
	left := maxChoices
	var found []portion
	var walk func(from int, chosen []candidate, room, more int) bool
	walk = func(from int, chosen []candidate, room, more int) bool {
		if left--; left < 0 {
			return true
		}
		if more == 0 || from == len(all) {
			if len(chosen) < n || room < tasks || !v.hasMust(chosen) {
				return false
			}
			slices.SortFunc(chosen, func(a, b candidate) int { return a.pos - b.pos })
			found = v.placeAllowed(chosen, n, tasks)
			return found != nil
		}
		for i := from; i <= len(all)-min(more, len(all)-from); i++ {
			if len(chosen)+more*len(all[i].c) < n { // those that follow have fewer
				return false
			}
			if walk(i+1, append(slices.Clone(chosen), all[i].c...), room+all[i].tasks, more-1) {
				return true
			}
		}
		return false
	}
	walk(0, nil, 0, min(v.g.Switches, len(all)))
	return found
}
