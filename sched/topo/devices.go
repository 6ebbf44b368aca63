// Package topo chooses among equals by closeness: which devices of a node, and
// which topology domains of a fleet. It never decides whether something fits.
package topo

import (
	"cmp"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// exact is how many sets of devices are compared one by one; above it, devices
// are added greedily. All sets of 8 of 16 devices are 12,870.
const exact = 13000

// Pick chooses n of the free devices: those with the strongest links among each
// other, on as few NUMA nodes as can be, leaving the others as well linked as can
// be, and then those of lowest position. It returns false if fewer than n are free.
func Pick(devices []fleet.Device, free index.Set, n int) (index.Set, bool) {
	have := free.Len()
	switch {
	case n > have:
		return index.Set{}, false
	case n == 0:
		return index.Set{}, true
	case n == have:
		return free, true
	}
	p := newPicker(devices, free.Positions())
	if !p.apart {
		return p.deviceSet(firstN(n)), true
	}
	if binomial(have, n, exact) <= exact {
		return p.searchAll(n), true
	}
	return p.searchGreedily(n), true
}

// score orders sets; the larger is the better one.
type score struct {
	weakest int // strength of the weakest link inside
	inside  int // sum of strengths inside
	numa    int // pairs on the same NUMA node
	broken  int // minus the strengths between the set and the free rest
}

func (a score) compareScore(b score) int {
	return cmp.Or(cmp.Compare(a.weakest, b.weakest), cmp.Compare(a.inside, b.inside),
		cmp.Compare(a.numa, b.numa), cmp.Compare(a.broken, b.broken))
}

type picker struct {
	pos   []int
	link  [][]int // strength between free devices
	numa  [][]int // 1: on the same NUMA node
	apart bool    // some pair differs from another
	total []int   // sum of strengths of each device to all free ones
}

func newPicker(devices []fleet.Device, pos []int) *picker {
	n := len(pos)
	p := &picker{pos: pos, link: make([][]int, n), numa: make([][]int, n), total: make([]int, n)}
	at := make(map[int]int, n)
	for i, x := range pos {
		p.link[i], p.numa[i] = make([]int, n), make([]int, n)
		at[devices[x].Index] = i
	}
	for i, x := range pos {
		for _, l := range devices[x].Links {
			if j, ok := at[l.Peer]; ok && j != i {
				p.link[i][j] = max(p.link[i][j], linkStrength(l))
				p.link[j][i] = p.link[i][j]
			}
		}
	}
	for i, x := range pos {
		for j, y := range pos {
			if i == j {
				continue
			}
			if devices[x].NUMA >= 0 && devices[x].NUMA == devices[y].NUMA {
				p.numa[i][j] = 1
			}
			p.total[i] += p.link[i][j]
			p.apart = p.apart || p.link[i][j] != p.link[0][1] || p.numa[i][j] != p.numa[0][1]
		}
	}
	return p
}

// linkStrength is one number for a link: the kind first, then the lanes.
func linkStrength(l fleet.Link) int { return int(l.Kind)<<8 + min(max(l.Lanes, 0), 255) }

func (p *picker) scoreOf(chosen []int) score {
	s := score{}
	if len(chosen) > 1 {
		s.weakest = 1 << 30
	}
	for k, i := range chosen {
		s.broken -= p.total[i]
		for _, j := range chosen[:k] {
			s.weakest = min(s.weakest, p.link[i][j])
			s.inside += p.link[i][j]
			s.numa += p.numa[i][j]
		}
	}
	s.broken += 2 * s.inside
	return s
}

// searchAll compares all sets of n in lexical order and keeps the first best one.
func (p *picker) searchAll(n int) index.Set {
	cur := firstN(n)
	best := append([]int(nil), cur...)
	top := p.scoreOf(cur)
	for next(cur, len(p.pos)) {
		if s := p.scoreOf(cur); s.compareScore(top) > 0 {
			top = s
			copy(best, cur)
		}
	}
	return p.deviceSet(best)
}

// searchGreedily starts at each device and adds the closest one; the best set wins.
func (p *picker) searchGreedily(n int) index.Set {
	var best []int
	var top score
	for start := range p.pos {
		set := []int{start}
		in := make([]bool, len(p.pos))
		in[start] = true
		for len(set) < n {
			add, most := -1, -1
			for i := range p.pos {
				if in[i] {
					continue
				}
				sum := 0
				for _, j := range set {
					sum += p.link[i][j]<<4 + p.numa[i][j]
				}
				if sum > most {
					add, most = i, sum
				}
			}
			set, in[add] = append(set, add), true
		}
		if s := p.scoreOf(set); best == nil || s.compareScore(top) > 0 {
			best, top = set, s
		}
	}
	return p.deviceSet(best)
}

func (p *picker) deviceSet(chosen []int) index.Set {
	var s index.Set
	for _, i := range chosen {
		s = s.With(p.pos[i])
	}
	return s
}

func firstN(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// next steps to the next combination of indices below m in lexical order.
func next(c []int, m int) bool {
	n := len(c)
	for i := n - 1; i >= 0; i-- {
		if c[i] < m-n+i {
			c[i]++
			for j := i + 1; j < n; j++ {
				c[j] = c[j-1] + 1
			}
			return true
		}
	}
	return false
}

// binomial is the binomial coefficient, or something above limit if it is larger.
func binomial(n, k, limit int) int {
	k = min(k, n-k)
	c := 1
	for i := 1; i <= k; i++ {
		c = c * (n - k + i) / i
		if c > limit {
			return c
		}
	}
	return c
}
