package whatif

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// Answer is what a change does.
type Answer struct {
	Before, After Figures
	Moved         []Moved // jobs that start at another time, those that gain most first
}

// Figures sum up an outcome.
type Figures struct {
	Jobs    int   `json:"jobs"`    // that wait and are not held
	Started int   `json:"started"` // of them within the bounds
	Held    int   `json:"held,omitempty"`
	Never   int   `json:"never,omitempty"` // that no node takes
	Wait    Waits `json:"wait"`
	// Use is the share of the devices (CPUs where there are none) that is in use from
	// now until the last waiting job has started as things are, in thousandths.
	Use int `json:"use_permille"`
	// Fair is Jain's index of what each account got of what it asked for in that time,
	// in thousandths: 1000 if all got the same part.
	Fair    int           `json:"fair_permille"`
	Sizes   []Part        `json:"sizes,omitempty"`
	Account []Part        `json:"accounts,omitempty"`
	Taken   int           `json:"taken,omitempty"`   // times that a running job is ended for another one
	Bounded bool          `json:"bounded,omitempty"` // the work was not done to its end
	Span    time.Duration `json:"span"`              // of Use and Fair
}

// Waits are from submission to start, of the jobs that start.
type Waits struct {
	Median, P90, Mean time.Duration
}

// Part is a part of the jobs.
type Part struct {
	Name    string `json:"name"`
	Jobs    int    `json:"jobs"`
	Started int    `json:"started"`
	Wait    Waits  `json:"wait"`
}

// Moved is a job that starts at another time: by a second at least.
type Moved struct {
	Job           job.ID
	Before, After sched.Instant // 0: not within the bounds
}

// Compare says how two outcomes differ.
func Compare(before, after *Outcome) *Answer {
	span := spanOf(before)
	if span == 0 {
		span = spanOf(after)
	}
	a := &Answer{Before: measureFigures(before, span), After: measureFigures(after, span)}
	was := map[job.ID]sched.Instant{}
	for i := range before.Jobs {
		was[before.Jobs[i].ID] = before.Jobs[i].Start
	}
	for i := range after.Jobs {
		j := &after.Jobs[i]
		old, waited := was[j.ID]
		if m := (Moved{j.ID, old, j.Start}); waited && old != j.Start && time.Duration(m.timeGained()).Abs() >= time.Second {
			a.Moved = append(a.Moved, m)
		}
	}
	slices.SortStableFunc(a.Moved, func(x, y Moved) int { return cmp.Compare(y.timeGained(), x.timeGained()) })
	return a
}

// timeGained is how much earlier a job starts; one that does not start is taken to start
// a year later.
func (m Moved) timeGained() sched.Instant {
	const late = sched.Instant(365 * 24 * time.Hour)
	before, after := m.Before, m.After
	if before == 0 {
		before = after + late
	}
	if after == 0 {
		after = before + late
	}
	return before - after
}

// spanOf is the time until the last job starts, at least an hour.
func spanOf(o *Outcome) time.Duration {
	last := sched.Instant(0)
	for i := range o.Jobs {
		last = max(last, o.Jobs[i].Start)
	}
	if last <= o.From {
		return 0
	}
	return max(time.Duration(last-o.From), time.Hour)
}

func measureFigures(o *Outcome, span time.Duration) Figures {
	f := Figures{Bounded: o.Bounded, Span: span, Taken: o.Taken}
	var waits []time.Duration
	sizes, accounts := map[int][]*Job{}, map[string][]*Job{}
	for i := range o.Jobs {
		j := &o.Jobs[i]
		switch {
		case j.Fixed:
			f.Held++
			continue
		case j.Never:
			f.Never++
			continue
		}
		f.Jobs++
		if j.Start != 0 {
			f.Started++
			waits = append(waits, time.Duration(j.Start-j.Since))
		}
		sizes[bandOf(j.Devices)] = append(sizes[bandOf(j.Devices)], j)
		accounts[payerOf(j.Spec)] = append(accounts[payerOf(j.Spec)], j)
	}
	f.Wait = waitsOf(waits)
	f.Use = deviceUse(o, span)
	f.Fair = jainFairness(accounts, o.From, span)
	for b := range len(bands) {
		if sizes[b] != nil {
			f.Sizes = append(f.Sizes, partOf(bands[b], sizes[b]))
		}
	}
	for _, name := range sortedKeys(accounts) {
		f.Account = append(f.Account, partOf(name, accounts[name]))
	}
	return f
}

var bands = []string{"no device", "1 device", "2–8 devices", "9–64 devices", "more than 64"}

func bandOf(devices int) int {
	switch {
	case devices == 0:
		return 0
	case devices == 1:
		return 1
	case devices <= 8:
		return 2
	case devices <= 64:
		return 3
	}
	return 4
}

// payerOf is the account of a job, or its owner where it has none.
func payerOf(s *job.Spec) string {
	if s.Account != "" {
		return s.Account
	}
	return s.Owner.User
}

func partOf(name string, jobs []*Job) Part {
	p := Part{Name: name, Jobs: len(jobs)}
	var waits []time.Duration
	for _, j := range jobs {
		if j.Start != 0 {
			p.Started++
			waits = append(waits, time.Duration(j.Start-j.Since))
		}
	}
	p.Wait = waitsOf(waits)
	return p
}

func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func waitsOf(all []time.Duration) Waits {
	if len(all) == 0 {
		return Waits{}
	}
	slices.Sort(all)
	sum := time.Duration(0)
	for i, w := range all {
		sum += (w - sum) / time.Duration(i+1) // the mean, without overflow
	}
	return Waits{Median: percentile(all, 50), P90: percentile(all, 90), Mean: sum}
}

// percentile is the smallest value that so many percent of all are not above.
func percentile(all []time.Duration, percent int) time.Duration {
	return all[(len(all)*percent+99)/100-1]
}

// deviceUse is the part of the devices that is used over a span, in thousandths.
func deviceUse(o *Outcome, span time.Duration) int {
	end := o.From + sched.Instant(span)
	var used, there int64 // device-seconds
	for i, u := range o.Use {
		until := end
		if i+1 < len(o.Use) {
			until = min(until, o.Use[i+1].At)
		}
		s := int64(until-u.At) / int64(time.Second)
		if s > 0 {
			used, there = used+s*int64(u.Used), there+s*int64(u.There)
		}
	}
	if there == 0 {
		return 0
	}
	return int(used * 1000 / there)
}

// jainFairness is Jain's index over accounts of the part of their waiting jobs' demand that
// has started within the span, each job weighed by its devices and how early it is.
func jainFairness(accounts map[string][]*Job, from sched.Instant, span time.Duration) int {
	sum, squares := uint64(0), uint64(0)
	n := uint64(0)
	for _, jobs := range accounts {
		asked, got := uint64(0), uint64(0)
		for _, j := range jobs {
			w := uint64(max(j.Devices, 1))
			asked += w * 1000
			if j.Start != 0 && span > 0 && j.Start-from < sched.Instant(span) {
				got += w * uint64(1000-int64(j.Start-from)/max(int64(span)/1000, 1))
			}
		}
		x := got * 1000 / asked
		sum, squares, n = sum+x, squares+x*x, n+1
	}
	if n == 0 || squares == 0 {
		return 1000
	}
	hi, lo := bits.Mul64(sum*sum, 1000)
	q, _ := bits.Div64(hi, lo, n*squares)
	return int(q)
}
