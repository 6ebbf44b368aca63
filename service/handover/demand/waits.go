package demand

import (
	"cmp"
	"slices"
	"time"
)

// EstimateWaits fills the waits that nobody knows: each piece of work starts, in its order, when its pool
// has as many units free as it and those before it need, by the expected ends of what runs. Where the
// units are is left out, and what ends of the waiting work itself. Work that needs more than will be free
// keeps its negative wait.
func EstimateWaits(in *Input) {
	type end struct {
		in    time.Duration
		units int
	}
	free, ends := map[string]int{}, map[string][]end{}
	for i := range in.Machines {
		m := &in.Machines[i]
		if m.To != "" {
			continue
		}
		free[m.Pool] += m.freeUnits()
		for k := range m.Runs {
			if r := &m.Runs[k]; !r.Ends.IsZero() && !m.Away {
				ends[m.Pool] = append(ends[m.Pool], end{max(r.Ends.Sub(in.Now), 0), r.Units})
			}
		}
	}
	for _, list := range ends {
		slices.SortStableFunc(list, func(a, b end) int { return cmp.Compare(a.in, b.in) })
	}
	at := map[string]time.Duration{}
	for i := range in.Waiting {
		w := &in.Waiting[i]
		need := w.Units * w.Count
		for free[w.Pool] < need && len(ends[w.Pool]) > 0 {
			e := ends[w.Pool][0]
			ends[w.Pool] = ends[w.Pool][1:]
			free[w.Pool] += e.units
			at[w.Pool] = e.in
		}
		if enough := free[w.Pool] >= need; enough && w.Wait < 0 {
			w.Wait = at[w.Pool]
		}
		free[w.Pool] -= need
	}
}
