package place

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/model/job"
)

// A group, or all groups together, may have to be within one domain of a level of the
// topology, and a group's nodes may have to come in segments that are each within one
// leaf (docs/explanation/topology.md; sbatch --segment, Slurm's topology.html).
// Nodes of which no path is known are in no domain.

// domainOf is the domain of a node at a level (0 is the outermost, a negative one the
// innermost), or -1.
func (v *view) domainOf(pos, level int) int {
	d := v.t.Node(pos).Domains
	switch {
	case level < 0 && len(d) > 0:
		return d[len(d)-1]
	case level < 0, level >= len(d):
		return -1
	}
	return d[level]
}

// inDomain places the tasks on exactly n nodes of one domain of the level that the
// group asks for, in the smallest domain of a deeper level that takes them.
func (v *view) inDomain(c []candidate, n, tasks int) []portion {
	place := v.placeWithin
	if v.g.Adjoint {
		place = v.placeAdjoint
	}
	levels := []int{job.InLeaf}
	if v.g.Spread && v.g.Within > 0 {
		levels = []int{v.g.Within - 1}
	} else if v.g.Within > 0 && (v.g.Segment == 0 || n > v.g.Segment) {
		for level := v.t.Levels() - 1; level >= v.g.Within-1; level-- {
			levels = append(levels, level)
		}
	}
	for _, level := range levels {
		for _, domain := range v.domainsAt(c, level, n) {
			if v.domainOf(domain[0].pos, v.g.Within-1) < 0 || !v.hasMust(domain) {
				continue
			}
			if p := place(domain, n, tasks); p != nil {
				return p
			}
		}
	}
	return nil
}

// wholeSegments keeps of candidates, which are in order of preference, as many of each
// leaf as make whole segments. The rest of the choice may take any whole number of
// segments of a leaf: with n a multiple of the segment, few leaves are whole ones.
func (v *view) wholeSegments(c []candidate, n int) []candidate {
	if n%v.g.Segment != 0 {
		return nil
	}
	count := map[int]int{}
	for _, x := range c {
		if d := v.domainOf(x.pos, job.InLeaf); d >= 0 {
			count[d]++
		}
	}
	for d := range count {
		count[d] -= count[d] % v.g.Segment
	}
	return slices.DeleteFunc(slices.Clone(c), func(x candidate) bool {
		d := v.domainOf(x.pos, job.InLeaf)
		if d < 0 || count[d] == 0 {
			return true
		}
		count[d]--
		return false
	})
}

// standTogether reports whether portions stand where the group may have them.
func (v *view) standTogether(used []portion) bool {
	g := v.g
	leaves, domains := map[int]int{}, map[int]bool{}
	for _, p := range used {
		leaves[v.domainOf(p.pos, job.InLeaf)]++
		domains[v.domainOf(p.pos, g.Within-1)] = true
	}
	if g.Within != 0 && (len(domains) != 1 || domains[-1]) {
		return false
	}
	if g.Switches > 0 && !v.withinLeaves(used) {
		return false
	}
	if g.Segment == 0 {
		return true
	}
	if n := len(used); n <= g.Segment {
		return len(leaves) == 1 && leaves[-1] == 0
	}
	for d, n := range leaves {
		if d < 0 || n%g.Segment != 0 {
			return false
		}
	}
	return true
}

// enclosure is a domain of a level.
type enclosure struct{ level, id, nodes int }

// enclosingDomains lists the domains that could have all groups of a gang, those of the
// innermost level first, and of a level the smaller ones first.
func (p *search) enclosingDomains() []enclosure {
	v := newView(p.t, nil, &p.shape.Groups[0], p.ideal)
	levels := []int{job.InLeaf}
	for level := p.t.Levels(); p.shape.Within > 0 && level >= p.shape.Within; level-- {
		levels = append(levels, level)
	}
	var out []enclosure
	for _, level := range levels {
		from, at := len(out), map[int]int{}
		for pos := range p.t.Len() {
			d := v.domainOf(pos, level-1)
			if level < 0 {
				d = v.domainOf(pos, level)
			}
			if d < 0 || v.domainOf(pos, p.shape.Within-1) < 0 {
				continue
			}
			i, seen := at[d]
			if !seen {
				i = len(out)
				at[d] = i
				out = append(out, enclosure{level: level, id: d})
			}
			out[i].nodes++
		}
		slices.SortStableFunc(out[from:], func(a, b enclosure) int { return cmp.Compare(a.nodes, b.nodes) })
	}
	return out
}
