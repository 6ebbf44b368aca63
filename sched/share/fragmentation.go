package share

import (
	"cmp"
	"math"
	"slices"
)

// Mix is how often which request arrives, ordered so that a node's fragmentation is
// found quickly: requests that differ in CPU alone are one group.
type Mix struct {
	groups  []group
	useless int64 // weight of requests that take no device
	all     int64
}

type group struct {
	milli, count int
	models       []int
	cpu          []int64 // ascending
	within       []int64 // weight of those that ask for at most so much CPU
	all          int64
}

// Weighed is a request with how often it arrives.
type Weighed struct {
	Request
	Weight int64
}

// NewMix makes a mix.
func NewMix(list []Weighed) *Mix {
	m := &Mix{}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b Weighed) int {
		return cmp.Or(cmp.Compare(a.Milli, b.Milli), cmp.Compare(a.Count, b.Count), slices.Compare(a.Models, b.Models), cmp.Compare(a.CPU, b.CPU))
	})
	for _, w := range sorted {
		m.all += w.Weight
		if w.Count == 0 {
			m.useless += w.Weight
			continue
		}
		last := len(m.groups) - 1
		if last < 0 || m.groups[last].milli != w.Milli || m.groups[last].count != w.Count || !slices.Equal(m.groups[last].models, w.Models) {
			m.groups = append(m.groups, group{milli: w.Milli, count: w.Count, models: w.Models})
			last++
		}
		g := &m.groups[last]
		g.all += w.Weight
		g.cpu = append(g.cpu, w.CPU)
		g.within = append(g.within, g.all)
	}
	return m
}

// Typical lists the most frequent requests until they are at least so many percent
// of all. Memory does not tell requests apart.
func Typical(all []Request, percent int) []Weighed {
	var list []Weighed
	for _, r := range all {
		r.Memory = 0
		i := slices.IndexFunc(list, func(w Weighed) bool {
			return w.CPU == r.CPU && w.Count == r.Count && w.Milli == r.Milli && slices.Equal(w.Models, r.Models)
		})
		if i < 0 {
			list = append(list, Weighed{Request: r})
			i = len(list) - 1
		}
		list[i].Weight++
	}
	slices.SortStableFunc(list, func(a, b Weighed) int { return cmp.Compare(b.Weight, a.Weight) })
	sum := int64(0)
	for i := range list {
		if 100*sum >= int64(percent*len(all)) {
			return list[:i]
		}
		sum += list[i].Weight
	}
	return list
}

// Fragmented is the amount of a node's free devices, in thousandths, that a request
// could not use: all of it where the request has no room, else what is left on
// devices that are too full for it (FGD, definition 3). It is the sum over the mix,
// by weight; divided by All it is the expectation.
func (m *Mix) Fragmented(cpu int64, left []int, model int) int64 {
	total := int64(0)
	for _, l := range left {
		total += int64(l)
	}
	if total == 0 {
		return 0
	}
	lost := m.useless * total
	for i := range m.groups {
		g := &m.groups[i]
		small, large := int64(0), 0
		for _, l := range left {
			if l < g.milli {
				small += int64(l)
			} else {
				large++
			}
		}
		fits := int64(0)
		if large >= g.count && g.takesModel(model) {
			fits = g.upTo(cpu)
		}
		lost += (g.all-fits)*total + fits*small
	}
	return lost
}

// takesModel reports whether a model will do.
func (g *group) takesModel(model int) bool {
	if len(g.models) == 0 {
		return true
	}
	_, found := slices.BinarySearch(g.models, model)
	return found
}

// All is the weight of the whole mix.
func (m *Mix) All() int64 { return m.all }

// upTo is the weight of requests of the group that ask for at most so much CPU.
func (g *group) upTo(cpu int64) int64 {
	if g.cpu[len(g.cpu)-1] <= cpu {
		return g.all
	}
	n, _ := slices.BinarySearch(g.cpu, cpu+1)
	if n == 0 {
		return 0
	}
	return g.within[n-1]
}

// Fragmentation places where the expected fragmentation grows least (FGD: Weng et
// al., Beware of Fragmentation, USENIX ATC 2023, algorithm 1). The mix is known
// beforehand.
type Fragmentation struct {
	Mix *Mix
	now []int // scratch
}

// Rate squeezes the growth, in devices, through a sigmoid into whole points.
func (s *Fragmentation) Rate(n *Node, r *Request) (int64, int) {
	before := s.Mix.Fragmented(n.CPU, n.Left, n.Model)
	rate := func(left []int) int64 {
		less := float64(before-s.Mix.Fragmented(n.CPU-r.CPU, left, n.Model)) / float64(s.Mix.All())
		return int64(float64(points / (1 + math.Exp(-less/Whole))))
	}
	s.now = append(s.now[:0], n.Left...)
	if !r.Part() {
		for _, d := range n.devicesTaken(r, -1) {
			s.now[d] -= r.Milli
		}
		return rate(s.now), -1
	}
	best, device := int64(0), -1
	for d, l := range n.Left {
		if l < r.Milli || slices.Contains(n.Left[:d], l) {
			continue // an equal one was tried
		}
		s.now[d] = l - r.Milli
		if x := rate(s.now); device < 0 || x > best {
			best, device = x, d
		}
		s.now[d] = l
	}
	return best, device
}
