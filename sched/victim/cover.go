package victim

import (
	"cmp"
	"container/heap"
	"slices"
)

// Cover chooses so many spots (nodes) that need the fewest and cheapest units taken
// away: spots[i] lists the units that have to go there, none for a spot that is free
// already. It takes the cheapest spot again and again, counting units that are
// chosen already as nothing. It returns their units, or false if there are too few
// spots.
func Cover(units []Unit, spots [][]int, need int) ([]int, bool) {
	if len(spots) < need {
		return nil, false
	}
	c := &cover{units: units, spots: spots, chosen: map[int]bool{}, at: map[int][]int{}, done: make([]bool, len(spots))}
	for i, spot := range spots {
		if len(spot) == 0 {
			if need--; need == 0 {
				return []int{}, true
			}
			c.done[i] = true
			continue
		}
		for _, u := range spot {
			c.at[u] = append(c.at[u], i)
		}
		c.heap = append(c.heap, c.priceOf(i))
	}
	heap.Init(c)
	var out []int
	for need > 0 {
		next := heap.Pop(c).(price)
		if c.done[next.spot] {
			continue // it stands there again, cheaper
		}
		c.done[next.spot] = true
		need--
		for _, u := range spots[next.spot] {
			if !c.chosen[u] {
				c.chosen[u] = true
				out = append(out, u)
				for _, i := range c.at[u] {
					if !c.done[i] {
						heap.Push(c, c.priceOf(i))
					}
				}
			}
		}
	}
	return out, true
}

// cover is one call of Cover: a heap of spots by what they still cost.
type cover struct {
	units  []Unit
	spots  [][]int
	at     map[int][]int // spots by unit; read by key only
	chosen map[int]bool
	done   []bool
	heap   []price
}

// price is what a spot costs beside what is chosen already.
type price struct {
	tier int32
	cost int64
	spot int
}

func (c *cover) priceOf(spot int) price {
	p := price{tier: -1 << 31, spot: spot}
	for _, u := range c.spots[spot] {
		if !c.chosen[u] {
			p.tier = max(p.tier, c.units[u].Tier)
			p.cost += c.units[u].Cost
		}
	}
	return p
}

func (c *cover) Len() int { return len(c.heap) }
func (c *cover) Less(i, j int) bool {
	a, b := c.heap[i], c.heap[j]
	return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.cost, b.cost), cmp.Compare(a.spot, b.spot)) < 0
}
func (c *cover) Swap(i, j int) { c.heap[i], c.heap[j] = c.heap[j], c.heap[i] }
func (c *cover) Push(x any)    { c.heap = append(c.heap, x.(price)) }
func (c *cover) Pop() any {
	last := c.heap[len(c.heap)-1]
	c.heap = c.heap[:len(c.heap)-1]
	return last
}

// Spot returns the units that have to go for one node to serve: of those that hold
// it, in the order of preference of greedy, as few as will do. serves is asked with
// the units that are gone; nil means that it does not serve without all of them
// either.
func Spot(units []Unit, on []int, serves func(gone []int) bool) []int {
	order := slices.Clone(on)
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &units[a], &units[b]
		return cmp.Or(cmp.Compare(x.Tier, y.Tier), cmp.Compare(x.Cost, y.Cost), cmp.Compare(a, b))
	})
	for n := 1; n <= len(order); n++ {
		if !serves(order[:n]) {
			continue
		}
		gone := order[:n]
		for i := n - 2; i >= 0; i-- { // the last one is needed
			without := slices.Delete(slices.Clone(gone), i, i+1)
			if serves(without) {
				gone = without
			}
		}
		return gone
	}
	return nil
}
