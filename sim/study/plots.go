package study

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// plots is what the report draws of one result.
type plots struct {
	span  time.Duration
	use   []float64 // share held, in stretches of equal length
	queue []float64 // jobs waiting, likewise
	gantt []bar
	rows  int // nodes of the Gantt chart
	until time.Duration
	from  time.Duration
}

// bar is a job on a node.
type bar struct {
	row      int
	from, to time.Duration
	job      int64
}

// Bounds of what is drawn.
const (
	stretches = 240
	barRows   = 64
	mostBars  = 3000
)

func bandName(k int) string {
	switch {
	case k < 0:
		return "part"
	case k <= 1:
		return fmt.Sprint(1 << k)
	}
	return fmt.Sprintf("%d–%d", 1<<(k-1)+1, 1<<k)
}

func (r *running) drawPlots(done []*record) plots {
	p := plots{span: r.use.now}
	for i := range stretches {
		from, to := p.span*time.Duration(i)/stretches, p.span*time.Duration(i+1)/stretches
		held, _ := r.use.meanBetween(from, to, r.totalWidth())
		p.use = append(p.use, held)
	}
	p.queue = meanWaiting(done, p.span)
	p.from, p.until = r.ganttWindow(done)
	for _, x := range done {
		if x.end < p.from || x.start > p.until {
			continue
		}
		for _, n := range x.nodes {
			if n < barRows && len(p.gantt) < mostBars {
				p.gantt = append(p.gantt, bar{int(n), max(x.start, p.from), min(x.end, p.until), x.ID})
			}
		}
	}
	p.rows = min(barRows, len(r.Nodes))
	return p
}

// meanWaiting is the mean number of waiting jobs in each stretch.
func meanWaiting(done []*record, span time.Duration) []float64 {
	out := make([]float64, stretches)
	if span == 0 {
		return out
	}
	step := span/stretches + 1
	for _, x := range done {
		for i := int(x.Submit / step); i < stretches && time.Duration(i)*step < x.start; i++ {
			from, to := time.Duration(i)*step, time.Duration(i+1)*step
			out[i] += float64(min(to, x.start)-max(from, x.Submit)) / float64(step)
		}
	}
	return out
}

// ganttWindow is the stretch that the Gantt chart shows: as long as it takes for about
// a thousand jobs to start, around the middle.
func (r *running) ganttWindow(done []*record) (from, to time.Duration) {
	starts := make([]time.Duration, len(done))
	for i, x := range done {
		starts[i] = x.start
	}
	slices.SortFunc(starts, cmp.Compare[time.Duration])
	if len(starts) == 0 {
		return 0, 0
	}
	first, last := max(0, len(starts)/2-500), min(len(starts)-1, len(starts)/2+500)
	return starts[first], max(starts[last], starts[first]+time.Hour)
}
