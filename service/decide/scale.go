package decide

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
)

// Kubernetes' values for its HorizontalPodAutoscaler.
const (
	tolerance  = 0.1              // of the target, within which nothing is changed
	stepPeriod = 15 * time.Second // in which the number at most doubles, or grows by stepCount
	stepCount  = 4
)

// Load is what the gateways and the replicas' own pages say.
type Load struct {
	Known    bool // a gateway has posted lately
	InFlight int  // requests that replicas work on
	Held     int  // requests that wait for a replica
	Rate     float64
	Last     time.Time // of the last request; zero: none is known
	Since    time.Time // since when requests are counted

	Pages   map[job.ID]float64 // Scale.Metric of the replicas whose Prometheus page was read lately
	Trouble string             // why one could not be read, for people
}

// Memory is what decisions remember of earlier ones and no journal keeps: after a restart of the server
// the stabilisation begins anew with the number wanted then.
type Memory struct {
	recommended []point // falling numbers in the order of time, within the cool-down
	wanted      []point // changes of the number wanted, the last one older than a step period first
	note        string  // why the number stays, for people
}

type point struct {
	at time.Time
	n  int
}

func (m Memory) clone() Memory {
	m.recommended, m.wanted, m.note = slices.Clone(m.recommended), slices.Clone(m.wanted), ""
	return m
}

// scale sets the number wanted.
func (p *plan) scale() {
	s, bounds := p.spec.Scale, p.spec.Replicas
	if s == nil {
		if bounds.Min < bounds.Max {
			p.want(min(max(p.doc.Want, bounds.Min), bounds.Max), "the bounds of the specification")
		}
		return
	}
	m := &p.out.Memory
	if len(m.wanted) == 0 {
		m.wanted, m.recommended = []point{{p.now, p.doc.Want}}, []point{{p.now, p.doc.Want}}
	}
	least, most := bounds.Min, bounds.Max
	if s.ToZero > 0 {
		least = max(least, 1)
	}
	if p.doc.Want == 0 && (s.ToZero > 0 || least == 0) {
		p.wakeUp(s, max(least, 1), most)
		return
	}
	p.want(min(max(p.doc.Want, least), most), "the bounds of the specification")
	if s.ToZero > 0 && p.fallAsleep(s.ToZero) {
		return
	}
	raw, text, ok := p.recommend(s)
	if !ok {
		m.note = text
		raw = p.doc.Want
	}
	p.follow(s, min(max(raw, least), most), text)
}

// want changes the number wanted.
func (p *plan) want(n int, why string) {
	if n == p.doc.Want {
		return
	}
	p.doc.ScaledWhy = fmt.Sprintf("%d → %d: %s", p.doc.Want, n, why)
	p.doc.Want, p.doc.ScaledAt, p.doc.ByHand = n, p.now, false
	m := &p.out.Memory
	m.wanted = append(m.wanted, point{p.now, n})
}

// wakeUp gives a service that sleeps replicas if a request waits.
func (p *plan) wakeUp(s *service.Scale, least, most int) {
	l := &p.in.Load
	waiting := l.Held + l.InFlight
	if waiting == 0 {
		return
	}
	n := 1
	if s.Metric == service.MetricInFlight {
		n = ceilDivide(float64(waiting), s.Target)
	}
	n = min(max(n, least), most)
	p.want(n, fmt.Sprintf("woken by %s", count(waiting, "request")))
	p.out.Memory.recommended = []point{{p.now, n}}
}

// fallAsleep wants no replica after so long without a request.
func (p *plan) fallAsleep(after time.Duration) bool {
	l := &p.in.Load
	if !l.Known || l.InFlight+l.Held > 0 {
		return false
	}
	last := l.Since
	for _, t := range []time.Time{l.Last, p.doc.ScaledAt} {
		if t.After(last) {
			last = t
		}
	}
	if end := last.Add(after); end.After(p.now) {
		p.wakeAt(end)
		return false
	}
	p.want(0, fmt.Sprintf("no request for %s", after))
	return true
}

// recommend says how many replicas the load asks for; false: nobody knows, and text says why.
func (p *plan) recommend(s *service.Scale) (n int, text string, ok bool) {
	l, want, target := &p.in.Load, p.doc.Want, s.Target
	if target <= 0 {
		return 0, "the target of the scale is 0", false
	}
	var sum float64
	counted := p.countReady()
	switch s.Metric {
	case service.MetricInFlight, service.MetricRate:
		if !l.Known {
			return 0, "no gateway has reported lately", false
		}
		if sum, text = float64(l.InFlight+l.Held), count(l.InFlight+l.Held, "request")+" in flight"; s.Metric == service.MetricRate {
			sum, text = l.Rate, number(l.Rate)+" requests a second"
		}
	default:
		counted = 0
		for _, r := range p.replicas {
			if v, there := p.pageOf(r); there {
				sum, counted = sum+v, counted+1
			}
		}
		if counted == 0 {
			return 0, fmt.Sprintf("no ready replica shows %s on its page%s", s.Metric, prefixed(": ", p.in.Load.Trouble)), false
		}
		text = fmt.Sprintf("%s %s in all", number(sum), s.Metric)
	}
	text += fmt.Sprintf(", target %s for each replica", number(target))
	// Replicas that are not ready count as zero if more would be wanted, as full if fewer.
	full := sum + float64(max(want-counted, 0))*target
	switch {
	case sum > float64(want)*target*(1+tolerance):
		return ceilDivide(sum, target), text, true
	case full < float64(want)*target*(1-tolerance):
		return ceilDivide(full, target), text, true
	}
	return want, text, true
}

// pageOf is the metric of a ready replica's page.
func (p *plan) pageOf(r *replica) (float64, bool) {
	if !r.isReady() {
		return 0, false
	}
	v, ok := p.in.Load.Pages[r.job.ID]
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, false
	}
	return v, true
}

// follow brings the number wanted to a recommendation, out by steps and in after the cool-down.
func (p *plan) follow(s *service.Scale, n int, text string) {
	m, want := &p.out.Memory, p.doc.Want
	cooldown := s.Cooldown
	if cooldown <= 0 {
		cooldown = service.DefaultCooldown
	}
	m.recommended = slices.DeleteFunc(m.recommended, func(x point) bool { return x.n <= n || p.now.Sub(x.at) >= cooldown })
	if since := p.now.Sub(p.doc.ScaledAt); p.doc.ByHand && n < want && since >= 0 && since < cooldown &&
		!slices.ContainsFunc(m.recommended, func(x point) bool { return x.n >= want }) { // what a person said counts as long
		m.recommended = slices.Insert(m.recommended, 0, point{p.doc.ScaledAt, want})
	}
	m.recommended = append(m.recommended, point{p.now, n})
	for len(m.wanted) > 1 && p.now.Sub(m.wanted[1].at) >= stepPeriod {
		m.wanted = m.wanted[1:]
	}
	switch {
	case n > want:
		start := want
		for _, x := range m.wanted {
			start = min(start, x.n)
		}
		most := max(2*start, start+stepCount)
		if n > most {
			text += fmt.Sprintf("; at most %d more in %s", most-start, stepPeriod)
			p.wakeAt(m.wanted[len(m.wanted)-1].at.Add(stepPeriod))
		}
		if to := min(n, most); to > want {
			p.want(to, text)
		} else {
			m.note = text
		}
	case n < want:
		if largest := m.recommended[0]; largest.n > n {
			p.wakeAt(largest.at.Add(cooldown))
			if largest.n >= want {
				m.note = fmt.Sprintf("%s: %d would do; it stays at %d until the cool-down of %s is over", text, n, want, cooldown)
				return
			}
			n = largest.n
		}
		p.want(n, text)
	default:
		m.note = text
	}
}

func ceilDivide(sum, each float64) int {
	if each <= 0 {
		return 1
	}
	return int(min(math.Ceil(sum/each-1e-9), 1e6))
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 4, 64) }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
