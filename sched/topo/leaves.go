package topo

import "cmp"

// Gather chooses n of the candidates so that they lie in few domains. domain
// names each candidate's domain (-1: not known), in
// order of preference. If one domain has enough, the one with the fewest that
// suffice is used; otherwise the largest ones are taken whole and the last one is
// the tightest that suffices. The result is indices into domain, or nil if there
// are fewer than n candidates.
func Gather(domain []int, n int) []int {
	if len(domain) < n {
		return nil
	}
	members := map[int][]int{}
	var order []int // domains by first appearance, so that no map order shows
	for i, d := range domain {
		if members[d] == nil {
			order = append(order, d)
		}
		members[d] = append(members[d], i)
	}
	var out []int
	for len(out) < n {
		best, found := 0, false
		for _, d := range order {
			if len(members[d]) > 0 && (!found || servesCloser(len(members[d]), len(members[best]), n-len(out))) {
				best, found = d, true
			}
		}
		take := members[best][:min(len(members[best]), n-len(out))]
		out = append(out, take...)
		members[best] = nil
	}
	return out
}

// servesCloser reports whether a domain with a candidates serves need better than one with b.
func servesCloser(a, b, need int) bool {
	switch {
	case a >= need && b >= need:
		return a < b
	case a >= need || b >= need:
		return a >= need
	}
	return a > b
}

// Scatter chooses n of the candidates so that they lie in as many domains as can be,
// and evenly. domain names each candidate's domain, in order of preference; used are
// the domains of what was chosen before. Each next one is of the domain with fewest
// chosen, among these of that with most left. The result is indices into domain, or
// nil if there are fewer than n.
func Scatter(domain, used []int, n int) []int {
	if len(domain) < n {
		return nil
	}
	chosen, members := map[int]int{}, map[int][]int{}
	for _, d := range used {
		chosen[d]++
	}
	var order []int // domains by first appearance, so that no map order shows
	for i, d := range domain {
		if members[d] == nil {
			order = append(order, d)
		}
		members[d] = append(members[d], i)
	}
	out := make([]int, 0, n)
	for len(out) < n {
		best, found := 0, false
		for _, d := range order {
			if len(members[d]) > 0 && (!found || cmp.Or(cmp.Compare(chosen[d], chosen[best]), cmp.Compare(len(members[best]), len(members[d]))) < 0) {
				best, found = d, true
			}
		}
		out = append(out, members[best][0])
		members[best] = members[best][1:]
		chosen[best]++
	}
	return out
}
