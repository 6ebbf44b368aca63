package study

import (
	"cmp"
	"slices"
	"time"
)

// Result is what came of a study. Shares are between 0 and 1, times in seconds.
type Result struct {
	Policy string `json:"policy"`
	Jobs   int    `json:"jobs"`
	Left   int    `json:"left_out"`      // of the trace: no width or no run time
	Never  int    `json:"never_started"` // larger than the cluster
	Cut    int    `json:"cut_by_limit"`

	Preempted int `json:"preempted,omitempty"` // how often a job made room for another

	Makespan   float64 `json:"makespan_s"`
	Allocation float64 `json:"allocation"`   // of the capacity, in the steady part
	Blocked    float64 `json:"blocked_idle"` // idle while a waiting job asks for no more, of the capacity, in the steady part

	Wait     Spread  `json:"wait_s"`
	Slowdown Spread  `json:"bounded_slowdown"`
	Bands    []Band  `json:"by_size"`
	Fairness float64 `json:"fairness_jain"` // of mean slowdowns over accounts or users; 0: fewer than two
	Owners   []Owner `json:"owners,omitempty"`

	Leaves   float64       `json:"leaves_over_least"` // used ÷ least possible, jobs on several nodes; 0: no switches
	Promises Honesty       `json:"promises"`
	Took     time.Duration `json:"-"`
	Seconds  float64       `json:"took_s,omitempty"`

	plots plots
}

// Spread of a quantity over jobs.
type Spread struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Most   float64 `json:"max"`
}

// Band is the jobs of a range of sizes.
type Band struct {
	Name     string `json:"size"`
	Jobs     int    `json:"jobs"`
	Wait     Spread `json:"wait_s"`
	Slowdown Spread `json:"bounded_slowdown"`
}

// Owner is an account, or a user where the trace has no accounts.
type Owner struct {
	Name     string  `json:"name"`
	Jobs     int     `json:"jobs"`
	Used     float64 `json:"used_hours"` // device or processor hours
	Slowdown float64 `json:"mean_slowdown"`
}

// Honesty compares starts with what jobs at the head of the queue were promised
// first.
type Honesty struct {
	Jobs int     `json:"jobs"`
	Late int     `json:"late"`
	P95  float64 `json:"late_p95_s"` // of all promised, 0 where none is late
}

// least is the run time below which the slowdown takes a job for this long.
const least = 10 * time.Second

func (x *record) boundedSlowdown() float64 {
	flow, run := x.end-x.Submit, x.end-x.start
	return max(1, flow.Seconds()/max(run, least).Seconds())
}

func (x *record) waitSeconds() float64 { return (x.start - x.Submit).Seconds() }

func spreadOf(list []float64) Spread {
	if len(list) == 0 {
		return Spread{}
	}
	slices.Sort(list)
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	at := func(p float64) float64 { return list[min(len(list)-1, int(p*float64(len(list))))] }
	return Spread{Mean: sum / float64(len(list)), Median: at(0.5), P95: at(0.95), Most: list[len(list)-1]}
}

// measureResult measures what was recorded.
func (r *running) measureResult() *Result {
	out := &Result{Policy: r.Name, Jobs: len(r.records), Left: r.Log.Left}
	var done []*record
	for i := range r.records {
		x := &r.records[i]
		if !x.ended {
			out.Never++
			continue
		}
		if x.end-x.start < x.Run && x.preempted == 0 {
			out.Cut++
		}
		out.Makespan = max(out.Makespan, x.end.Seconds())
		done = append(done, x)
	}
	for _, o := range r.sim.Outcomes() {
		out.Preempted += o.Preempted
	}
	out.Wait = spreadOf(valuesOf(done, (*record).waitSeconds))
	out.Slowdown = spreadOf(valuesOf(done, (*record).boundedSlowdown))
	out.Bands = r.sizeBands(done)
	out.Owners, out.Fairness = r.sumOwners(done)
	out.Promises = measureHonesty(done)
	out.Leaves = r.leafCloseness(done)
	from, to := r.steadySpan()
	out.Allocation, out.Blocked = r.use.meanBetween(from, to, r.totalWidth())
	out.plots = r.drawPlots(done)
	return out
}

func valuesOf(list []*record, f func(*record) float64) []float64 {
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// steadySpan is the part of the time between the first tenth and the last tenth of the
// submissions: the cluster neither fills nor drains.
func (r *running) steadySpan() (from, to time.Duration) {
	n := len(r.records)
	from, to = r.records[n/10].Submit, r.records[n-1-n/10].Submit
	if to <= from { // everything at once: until the last tenth begins to end
		from, to = 0, r.use.now
	}
	return from, to
}

// meanBetween is the mean share held, and idle in vain, in a stretch of time.
func (u *use) meanBetween(from, to time.Duration, total int) (held, blocked float64) {
	if to <= from || total == 0 {
		return 0, 0
	}
	for i, s := range u.samples {
		end := u.now
		if i+1 < len(u.samples) {
			end = u.samples[i+1].from
		}
		if part := (min(end, to) - max(s.from, from)).Seconds(); part > 0 {
			held += part * float64(s.held)
			blocked += part * float64(s.blocked)
		}
	}
	all := (to - from).Seconds() * float64(total)
	return held / all, blocked / all
}

// sizeBands sorts jobs by size: powers of two of devices or processors.
func (r *running) sizeBands(done []*record) []Band {
	by := map[int][]*record{}
	for _, x := range done {
		n, k := r.jobWidth(x.Job), 0
		for ; n > 1000<<k; k++ {
		}
		if n < 1000 {
			k = -1
		}
		by[k] = append(by[k], x)
	}
	var out []Band
	for k := -1; k < 40; k++ {
		if list := by[k]; len(list) > 0 {
			out = append(out, Band{Name: bandName(k), Jobs: len(list), Wait: spreadOf(valuesOf(list, (*record).waitSeconds)), Slowdown: spreadOf(valuesOf(list, (*record).boundedSlowdown))})
		}
	}
	return out
}

// sumOwners sums up what each account got, and says how even it was: Jain's index over
// their mean slowdowns' inverses.
func (r *running) sumOwners(done []*record) ([]Owner, float64) {
	at := map[string]int{}
	var out []Owner
	for _, x := range done {
		name := cmp.Or(x.Group, x.User)
		if name == "" {
			continue
		}
		i, ok := at[name]
		if !ok {
			i = len(out)
			at[name] = i
			out = append(out, Owner{Name: name})
		}
		o := &out[i]
		o.Jobs++
		o.Used += (x.end - x.start).Hours() * float64(r.jobWidth(x.Job)) / 1000
		o.Slowdown += x.boundedSlowdown()
	}
	var sum, squares float64
	for i := range out {
		out[i].Slowdown /= float64(out[i].Jobs)
		v := 1 / out[i].Slowdown
		sum += v
		squares += v * v
	}
	slices.SortStableFunc(out, func(a, b Owner) int { return cmp.Compare(b.Used, a.Used) })
	if len(out) < 2 {
		return out, 0
	}
	return out, sum * sum / (float64(len(out)) * squares)
}

func measureHonesty(done []*record) (h Honesty) {
	var late []float64
	for _, x := range done {
		if x.first < 0 {
			continue
		}
		h.Jobs++
		if x.start > x.first {
			h.Late++
		}
		late = append(late, max(0, (x.start-x.first).Seconds()))
	}
	h.P95 = spreadOf(late).P95
	return h
}

// leafCloseness is leaves used ÷ the least that so many nodes need, over jobs on several
// nodes below switches.
func (r *running) leafCloseness(done []*record) float64 {
	var sizes []int
	for at, n := range r.inLeaf {
		if at != "" {
			sizes = append(sizes, n)
		}
	}
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	used, fewest := 0, 0
	for _, x := range done {
		if x.leaves == 0 {
			continue
		}
		used += x.leaves
		left := len(x.nodes)
		for _, n := range sizes {
			if left <= 0 {
				break
			}
			left -= n
			fewest++
		}
	}
	if fewest == 0 {
		return 0
	}
	return float64(used) / float64(fewest)
}
