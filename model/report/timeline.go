package report

import "time"

// mostPoints bounds the parts of a window.
const mostPoints = 62

// timeline adds up what was held in equal parts of a window.
type timeline struct {
	step, first int64 // seconds; the beginning of the first part
	list        []point
	priced      bool
}

// point is a part; seconds of devices and CPUs, and money.
type point struct{ gpu, cpu, cost float64 }

// steps are the lengths of parts, the shortest first.
var steps = []int64{hour, 6 * hour, 24 * hour, 7 * 24 * hour, 30 * 24 * hour, 365 * 24 * hour}

// newTimeline begins a timeline. A window that is too long for the longest step is cut.
func newTimeline(from, to int64, priced bool) *timeline {
	t := &timeline{priced: priced}
	n := int64(0)
	for _, t.step = range steps {
		t.first = from - from%t.step
		if n = (to - t.first + t.step - 1) / t.step; n <= mostPoints {
			break
		}
	}
	if n > mostPoints {
		n = mostPoints
		t.first = to - n*t.step
	}
	t.list = make([]point, n)
	return t
}

// add adds the part of an attempt that is in the window, and what that costs.
func (t *timeline) add(a *Attempt, in span, cost float64) {
	if in.end <= in.start {
		return
	}
	gpus, all := a.Held.GPUs(), float64(in.end-in.start)
	for k := max((in.start-t.first)/t.step, 0); k < int64(len(t.list)); k++ {
		begin := t.first + k*t.step
		part := float64(min(in.end, begin+t.step) - max(in.start, begin))
		if part <= 0 {
			break
		}
		t.list[k].gpu += gpus * part * in.rate
		t.list[k].cpu += a.Held.CPUs * part * in.rate
		t.list[k].cost += cost * part / all
	}
}

// points are the parts.
func (t *timeline) points() *OverTime {
	out := &OverTime{Step: t.step, Points: make([]Point, len(t.list))}
	for k, p := range t.list {
		out.Points[k] = Point{From: time.Unix(t.first+int64(k)*t.step, 0).UTC(), GPUHours: *known(p.gpu / hour), CPUHours: *known(p.cpu / hour)}
		if t.priced {
			out.Points[k].Cost = known(p.cost)
		}
	}
	return out
}
