package place

import "slices"

// maxCells bounds the work of exact. It counts table cells, not time.
const maxCells = 4_000_000

// region is what a node can take: for t tasks at most give[t] of the devices
// collected in total, -1 where t tasks do not fit or may not be.
type region struct {
	pos  int
	give []int
	must bool // it takes part in any case
}

// placeExactly chooses n of the candidates (all of them if all is set) and divides both
// tasks and one kind of device collected in total over them. Both compete for the
// same node, so that no order of filling is right; this tries all of them by
// dynamic programming. It gives up (nil) where the table would become too large
// or more than one kind is collected.
func (v *view) placeExactly(c []candidate, n, tasks int, all bool) []portion {
	if len(v.g.TotalDevices) != 1 {
		return nil
	}
	want := v.g.TotalDevices[0].Count
	regions := v.listRegions(c, n, tasks, want, all)
	width := tasks + 1
	if len(regions) < n || (len(regions)+1)*(n+1)*width > maxCells {
		return nil
	}
	// best[i][k][t]: the most devices from the first i nodes if k of them run t tasks.
	size := (n + 1) * width
	best := make([]int, (len(regions)+1)*size)
	for i := range best {
		best[i] = -1
	}
	best[0] = 0
	for i, r := range regions {
		now, after := best[i*size:(i+1)*size], best[(i+1)*size:(i+2)*size]
		if !r.must {
			copy(after, now)
		}
		extendTable(now, after, r.give, n, width)
	}
	if best[len(regions)*size+n*width+tasks] < want {
		return nil
	}
	return v.traceBack(regions, best, n, width, want)
}

// extendTable adds one node that takes part.
func extendTable(now, after, give []int, n, width int) {
	for k := range n {
		for t := range width {
			have := now[k*width+t]
			if have < 0 {
				continue
			}
			for d, g := range give {
				if g < 0 || t+d >= width {
					continue
				}
				cell := &after[(k+1)*width+t+d]
				*cell = max(*cell, have+g)
			}
		}
	}
}

// traceBack walks the table back and turns the best division into portions.
func (v *view) traceBack(regions []region, best []int, n, width, want int) []portion {
	size := (n + 1) * width
	k, t := n, width-1
	surplus := best[len(regions)*size+k*width+t] - want
	least := 0
	if want >= n {
		least = 1
	}
	var out []portion
	for i := len(regions) - 1; i >= 0; i-- {
		have := best[(i+1)*size+k*width+t]
		if !regions[i].must && best[i*size+k*width+t] == have {
			continue
		}
		for d, g := range regions[i].give {
			if g < 0 || d > t || k == 0 || best[i*size+(k-1)*width+t-d] < 0 || best[i*size+(k-1)*width+t-d]+g != have {
				continue
			}
			less := min(surplus, g-least)
			surplus -= less
			out = append(out, portion{pos: regions[i].pos, tasks: d, extra: []int{g - less}})
			k, t = k-1, t-d
			break
		}
	}
	if surplus > 0 {
		return nil
	}
	slices.Reverse(out)
	return out
}

// listRegions lists what each node can take, in node order and at most n that are alike.
func (v *view) listRegions(c []candidate, n, tasks, want int, all bool) []region {
	seen := map[string]int{}
	var out []region
	for _, x := range c {
		give := make([]int, min(x.tasks, tasks)+1)
		key := make([]byte, 0, len(give)*2)
		left := x.extra
		for t := range give {
			for left >= 0 && !v.nodeFits(x.pos, t, []int{left}) {
				left--
			}
			give[t] = left
			if v.g.Each > 0 && t != v.g.Each || t == 0 && tasks >= n || t > 1 && tasks < n || want >= n && left < 1 {
				give[t] = -1
			}
			key = append(key, byte(give[t]>>8), byte(give[t]))
		}
		must := all || slices.ContainsFunc(v.g.Must, v.t.Node(x.pos).Is)
		if seen[string(key)]++; must || seen[string(key)] <= n {
			out = append(out, region{x.pos, give, must})
		}
	}
	return out
}
