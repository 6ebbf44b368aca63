package defrag

import "github.com/coxswain-sched/coxswain/sched/victim"

// Best is the slow twin of Choose: what the cheapest of all sets costs that does; ok is
// false if none costs less than what the move is worth. Tests compare Choose with it.
func Best(units []victim.Unit, f Field, b Bounds) (least int64, ok bool) {
	if len(units) > 16 {
		panic("defrag.Best: more than 16 units")
	}
	for mask := 1; mask < 1<<len(units); mask++ {
		var set []int
		for i := range units {
			if mask>>i&1 == 1 {
				set = append(set, i)
			}
		}
		c := costOf(units, set)
		if c >= b.Worth || len(set) > b.Most || ok && c >= least {
			continue
		}
		for _, i := range set {
			f.Take(i)
		}
		if f.Fits() && f.Settles(set) {
			least, ok = c, true
		}
		for _, i := range set {
			f.Back(i)
		}
	}
	return least, ok
}
