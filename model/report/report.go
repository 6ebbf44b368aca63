package report

import (
	"math"
	"time"
)

// Report is what the jobs of a time come to. A number that is left out is not of the kind, or not
// known.
type Report struct {
	Kind     Kind      `json:"kind" doc:"usage, waits, fairness, efficiency or cost"`
	From     time.Time `json:"from" doc:"beginning of the window, inclusive"`
	To       time.Time `json:"to" doc:"end of the window, exclusive"`
	Made     time.Time `json:"made" doc:"until then it counts what runs"`
	By       []Key     `json:"by" doc:"what rows are by: account, user, qos, pool, service"`
	Scope    string    `json:"scope" doc:"all: of the jobs of everybody; own: of the caller's own alone, since jobs are private"`
	Currency string    `json:"currency,omitempty" doc:"of costs, as prices.currency of the site's rules says"`
	Rows     []Row     `json:"rows" doc:"a row for each group of jobs, the largest first; of fairness in the order of the tree"`
	Total    *Row      `json:"total,omitempty" doc:"of all rows; left out of fairness"`
	Budgets  []Spent   `json:"budgets,omitempty" doc:"of cost: budgets of the accounts, with what was spent of them up to the end of the window"`
	Notes    []string  `json:"notes,omitempty" doc:"what a reader has to know of these numbers, as sentences"`

	OverTime *OverTime `json:"over_time,omitempty" doc:"of usage, efficiency and cost: the window in equal parts"`

	Units map[string]string `json:"units" doc:"units of the fields of rows"`
}

// OverTime is what was held in parts of the window that follow each other.
type OverTime struct {
	Step   int64   `json:"step_seconds" doc:"length of a part"`
	Points []Point `json:"points" doc:"one for each part, at most 62; parts begin at multiples of the step in UTC"`
}

// Point is a part of the window.
type Point struct {
	From     time.Time `json:"from" doc:"beginning of the part"`
	GPUHours float64   `json:"gpu_hours_allocated"`
	CPUHours float64   `json:"cpu_hours_allocated"`
	Cost     *float64  `json:"cost,omitempty" doc:"of cost"`
}

// Row is a group of jobs. Hours are of the part of attempts that is within the window.
type Row struct {
	Account string `json:"account,omitempty"`
	User    string `json:"user,omitempty"`
	QOS     string `json:"qos,omitempty"`
	Pool    string `json:"pool,omitempty"`
	Service string `json:"service,omitempty" doc:"ACCOUNT/NAME; left out: no replicas of a service"`
	Size    string `json:"size,omitempty" doc:"of waits: class of size of the jobs"`
	Depth   int    `json:"depth,omitempty" doc:"of fairness: below the root of the tree of accounts"`

	Jobs *float64 `json:"jobs,omitempty" doc:"that ran within the window; of waits: that started in it"`

	GPUAsked    *float64 `json:"gpu_hours_asked,omitempty" doc:"devices asked for × time limit; without a limit, what was held"`
	GPUHeld     *float64 `json:"gpu_hours_allocated,omitempty" doc:"devices held × time; a part of a device counts as that part"`
	GPUMeasured *float64 `json:"gpu_hours_measured,omitempty" doc:"of those allocated: of attempts whose use of devices was measured"`
	GPUUsed     *float64 `json:"gpu_hours_used,omitempty" doc:"measured hours × the part of the time in which the device was busy"`
	GPUBusy     *float64 `json:"gpu_busy_percent,omitempty" doc:"used of measured"`
	GPUIdle     *float64 `json:"gpu_hours_idle,omitempty" doc:"measured and not used"`
	GPUOver     *float64 `json:"gpu_hours_overasked,omitempty" doc:"of attempts with a time limit that ended by themselves: asked for and given back early"`
	GPUFree     *float64 `json:"gpu_hours_free,omitempty" doc:"of efficiency by pool alone: of the devices that the pool has now, times the window, what no job held"`
	GPULost     *float64 `json:"gpu_hours_lost,omitempty" doc:"allocated to attempts that came to nothing: FAILED, TIMEOUT, OUT_OF_MEMORY, NODE_FAIL, or begun anew"`

	CPUAsked    *float64 `json:"cpu_hours_asked,omitempty" doc:"CPUs asked for × time limit; without a limit, what was held"`
	CPUHeld     *float64 `json:"cpu_hours_allocated,omitempty" doc:"CPUs held × time"`
	CPUMeasured *float64 `json:"cpu_hours_measured,omitempty" doc:"of those allocated: of attempts whose CPU time was measured"`
	CPUUsed     *float64 `json:"cpu_hours_used,omitempty" doc:"CPU time"`
	CPUBusy     *float64 `json:"cpu_busy_percent,omitempty" doc:"used of measured"`
	CPUIdle     *float64 `json:"cpu_hours_idle,omitempty" doc:"measured and not used"`
	CPULost     *float64 `json:"cpu_hours_lost,omitempty" doc:"as gpu_hours_lost"`

	MemoryHeld *float64 `json:"memory_gib_hours_allocated,omitempty" doc:"memory held × time"`
	MemoryIdle *float64 `json:"memory_gib_hours_unused,omitempty" doc:"of measured attempts: memory held beyond the peak × time"`
	MemoryUsed *float64 `json:"memory_used_percent,omitempty" doc:"of measured attempts: peak of what was held"`
	TimeAsked  *float64 `json:"job_hours_asked,omitempty" doc:"time limits of ended attempts that had one"`
	TimeRan    *float64 `json:"job_hours_ran,omitempty" doc:"how long these ran"`
	TimeUsed   *float64 `json:"time_used_percent,omitempty" doc:"ran of asked, of attempts that ended by themselves"`

	WaitMedian *float64 `json:"wait_median_seconds,omitempty" doc:"of those that started: half waited no longer; exact below 256 s, else to 1 %"`
	WaitP90    *float64 `json:"wait_p90_seconds,omitempty" doc:"nine of ten waited no longer"`
	WaitP99    *float64 `json:"wait_p99_seconds,omitempty" doc:"99 of 100 waited no longer"`
	WaitMost   *float64 `json:"wait_longest_seconds,omitempty" doc:"of one that started"`
	Waiting    *float64 `json:"waiting,omitempty" doc:"jobs that still wait"`
	WaitingFor *float64 `json:"waiting_longest_seconds,omitempty" doc:"how long one of them has waited"`

	Shares   *float64 `json:"shares,omitempty" doc:"as the rules say; -1: those of the account above"`
	Share    *float64 `json:"share_percent,omitempty" doc:"its part of the whole machine"`
	UsePart  *float64 `json:"use_percent,omitempty" doc:"its part of the GPU-hours of the window, of CPU-hours where there are none; an account counts with those below it"`
	UseRatio *float64 `json:"use_of_share,omitempty" doc:"use ÷ share: more than 1 is more than its share"`
	Decayed  *float64 `json:"decayed_use_percent,omitempty" doc:"its part of the usage that the fair share counts, which decays"`
	Factor   *float64 `json:"fair_share_factor,omitempty" doc:"of a user: between 0 and 1; larger goes first"`

	CostAll     *float64 `json:"cost,omitempty" doc:"in the currency"`
	CostGPU     *float64 `json:"cost_gpu,omitempty"`
	CostCPU     *float64 `json:"cost_cpu,omitempty"`
	CostMemory  *float64 `json:"cost_memory,omitempty"`
	GPUUnpriced *float64 `json:"gpu_hours_unpriced,omitempty" doc:"GPU-hours for which no rate has a price"`
}

// sums is what is added up of a group of jobs. Hours, but for jobs and GiB hours.
type sums struct {
	jobs                                      float64
	gpuAsked, gpuHeld, gpuMeasured, gpuUsed   float64
	gpuOver, gpuLost                          float64
	cpuAsked, cpuHeld, cpuMeasured, cpuUsed   float64
	cpuLost                                   float64
	memoryHeld, memoryMeasured, memoryPeak    float64
	timeAsked, timeRan                        float64
	costGPU, costCPU, costMemory, gpuUnpriced float64
	waits                                     histogram
	waiting, waitingFor                       float64
}

// known points at a number, rounded to a millionth.
func known(x float64) *float64 {
	x = math.Round(x*1e6) / 1e6
	return &x
}

// partOf is part of whole in per cent; nil of nothing.
func partOf(part, whole float64) *float64 {
	if whole <= 0 {
		return nil
	}
	return known(100 * part / whole)
}

// ifMeasured is a number if something was measured, else nil.
func ifMeasured(x, measured float64) *float64 {
	if measured <= 0 {
		return nil
	}
	return known(x)
}

// fill writes the numbers of a kind into a row.
func (s *sums) fill(r *Row, kind Kind) {
	r.Jobs = known(s.jobs)
	switch kind {
	case Usage:
		r.GPUAsked, r.GPUHeld, r.GPUMeasured = known(s.gpuAsked), known(s.gpuHeld), known(s.gpuMeasured)
		r.GPUUsed, r.GPUBusy = ifMeasured(s.gpuUsed, s.gpuMeasured), partOf(s.gpuUsed, s.gpuMeasured)
		r.CPUAsked, r.CPUHeld, r.CPUMeasured = known(s.cpuAsked), known(s.cpuHeld), known(s.cpuMeasured)
		r.CPUUsed, r.MemoryHeld = ifMeasured(s.cpuUsed, s.cpuMeasured), known(s.memoryHeld)
	case Efficiency:
		r.GPUHeld, r.GPUMeasured, r.GPULost, r.GPUOver = known(s.gpuHeld), known(s.gpuMeasured), known(s.gpuLost), known(s.gpuOver)
		r.GPUIdle, r.GPUBusy = ifMeasured(s.gpuMeasured-s.gpuUsed, s.gpuMeasured), partOf(s.gpuUsed, s.gpuMeasured)
		r.CPUHeld, r.CPUMeasured, r.CPULost = known(s.cpuHeld), known(s.cpuMeasured), known(s.cpuLost)
		r.CPUIdle, r.CPUBusy = ifMeasured(max(s.cpuMeasured-s.cpuUsed, 0), s.cpuMeasured), partOf(s.cpuUsed, s.cpuMeasured)
		r.MemoryHeld = known(s.memoryHeld)
		r.MemoryIdle, r.MemoryUsed = ifMeasured(max(s.memoryMeasured-s.memoryPeak, 0), s.memoryMeasured), partOf(s.memoryPeak, s.memoryMeasured)
		r.TimeAsked, r.TimeRan, r.TimeUsed = known(s.timeAsked), known(s.timeRan), partOf(s.timeRan, s.timeAsked)
	case Waits:
		r.Jobs, r.Waiting = known(float64(s.waits.count)), known(s.waiting)
		if s.waits.count > 0 {
			at := func(part float64) *float64 { return known(float64(s.waits.quantile(part))) }
			r.WaitMedian, r.WaitP90, r.WaitP99, r.WaitMost = at(0.5), at(0.9), at(0.99), known(float64(s.waits.most))
		}
		if s.waiting > 0 {
			r.WaitingFor = known(s.waitingFor)
		}
	case Fairness:
		r.GPUHeld, r.CPUHeld = known(s.gpuHeld), known(s.cpuHeld)
	case Cost:
		r.GPUHeld, r.CPUHeld, r.GPUUnpriced = known(s.gpuHeld), known(s.cpuHeld), known(s.gpuUnpriced)
		r.CostGPU, r.CostCPU, r.CostMemory = known(s.costGPU), known(s.costCPU), known(s.costMemory)
		r.CostAll = known(s.costGPU + s.costCPU + s.costMemory)
	}
}
