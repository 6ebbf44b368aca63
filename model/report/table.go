package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Column is a column of a report's table.
type Column struct {
	Name  string // of the field of Row: gpu_hours_asked
	Title string // GPU-h asked
	Unit  string // GPU-hours; empty: text
	Wide  bool   // people look at it only where there is room
	about func(*Row) any
}

// Value is a value of a table.
type Value struct {
	Text   string  // for people, with its unit where the column's title has none; empty: not known
	Exact  string  // for programs; empty: not known
	Number float64 // 0 of texts
	IsText bool
}

// Table is the rows of a report as a table.
type Table struct {
	Columns []Column
	Rows    [][]Value
	Total   []Value // nil: there is none
}

// Units of columns.
const (
	unitHours   = "hours"
	unitMoney   = "currency"
	unitPercent = "percent"
	unitSeconds = "seconds"
	unitCount   = "jobs"
	unitRatio   = "ratio"
)

// keyColumns are the columns of keys.
var keyColumns = map[Key]Column{
	ByAccount: {"account", "Account", "", false, func(r *Row) any { return r.Account }},
	ByUser:    {"user", "User", "", false, func(r *Row) any { return r.User }},
	ByQOS:     {"qos", "QOS", "", false, func(r *Row) any { return r.QOS }},
	ByPool:    {"pool", "Pool", "", false, func(r *Row) any { return r.Pool }},
	ByService: {"service", "Service", "", false, func(r *Row) any { return r.Service }},
}

var jobsColumn = Column{"jobs", "Jobs", unitCount, false, func(r *Row) any { return r.Jobs }}

var (
	gpuHeld = Column{"gpu_hours_allocated", "GPU-h allocated", "GPU-hours", false, func(r *Row) any { return r.GPUHeld }}
	gpuBusy = Column{"gpu_busy_percent", "GPU busy", unitPercent, false, func(r *Row) any { return r.GPUBusy }}
	cpuHeld = Column{"cpu_hours_allocated", "CPU-h allocated", "CPU-hours", false, func(r *Row) any { return r.CPUHeld }}
	memHeld = Column{"memory_gib_hours_allocated", "GiB-h allocated", "GiB-hours", true, func(r *Row) any { return r.MemoryHeld }}
)

// kindColumns are the columns of each kind behind those of the keys.
var kindColumns = map[Kind][]Column{
	Usage: {
		jobsColumn,
		{"gpu_hours_asked", "GPU-h asked", "GPU-hours", false, func(r *Row) any { return r.GPUAsked }},
		gpuHeld,
		{"gpu_hours_used", "GPU-h used", "GPU-hours", false, func(r *Row) any { return r.GPUUsed }},
		{"gpu_hours_measured", "GPU-h measured", "GPU-hours", true, func(r *Row) any { return r.GPUMeasured }},
		gpuBusy,
		{"cpu_hours_asked", "CPU-h asked", "CPU-hours", true, func(r *Row) any { return r.CPUAsked }},
		cpuHeld,
		{"cpu_hours_used", "CPU-h used", "CPU-hours", false, func(r *Row) any { return r.CPUUsed }},
		{"cpu_hours_measured", "CPU-h measured", "CPU-hours", true, func(r *Row) any { return r.CPUMeasured }},
		memHeld,
	},
	Waits: {
		{"size", "Size", "", false, func(r *Row) any { return r.Size }},
		{"jobs", "Started", unitCount, false, func(r *Row) any { return r.Jobs }},
		{"wait_median_seconds", "Median wait", unitSeconds, false, func(r *Row) any { return r.WaitMedian }},
		{"wait_p90_seconds", "90 %", unitSeconds, false, func(r *Row) any { return r.WaitP90 }},
		{"wait_p99_seconds", "99 %", unitSeconds, false, func(r *Row) any { return r.WaitP99 }},
		{"wait_longest_seconds", "Longest", unitSeconds, false, func(r *Row) any { return r.WaitMost }},
		{"waiting", "Waiting now", unitCount, false, func(r *Row) any { return r.Waiting }},
		{"waiting_longest_seconds", "For up to", unitSeconds, false, func(r *Row) any { return r.WaitingFor }},
	},
	Fairness: {
		{"shares", "Shares", unitRatio, false, func(r *Row) any { return r.Shares }},
		{"share_percent", "Share", unitPercent, false, func(r *Row) any { return r.Share }},
		{"use_percent", "Use", unitPercent, false, func(r *Row) any { return r.UsePart }},
		{"use_of_share", "Use/share", unitRatio, false, func(r *Row) any { return r.UseRatio }},
		gpuHeld, cpuHeld,
		{"decayed_use_percent", "Decayed use", unitPercent, false, func(r *Row) any { return r.Decayed }},
		{"fair_share_factor", "Fair share", unitRatio, false, func(r *Row) any { return r.Factor }},
	},
	Efficiency: {
		jobsColumn, gpuHeld, gpuBusy,
		{"gpu_hours_idle", "GPU-h idle", "GPU-hours", false, func(r *Row) any { return r.GPUIdle }},
		{"gpu_hours_measured", "GPU-h measured", "GPU-hours", true, func(r *Row) any { return r.GPUMeasured }},
		{"gpu_hours_overasked", "GPU-h overasked", "GPU-hours", false, func(r *Row) any { return r.GPUOver }},
		{"gpu_hours_free", "GPU-h free", "GPU-hours", false, func(r *Row) any { return r.GPUFree }},
		{"gpu_hours_lost", "GPU-h lost", "GPU-hours", false, func(r *Row) any { return r.GPULost }},
		cpuHeld,
		{"cpu_busy_percent", "CPU busy", unitPercent, false, func(r *Row) any { return r.CPUBusy }},
		{"cpu_hours_idle", "CPU-h idle", "CPU-hours", true, func(r *Row) any { return r.CPUIdle }},
		{"cpu_hours_measured", "CPU-h measured", "CPU-hours", true, func(r *Row) any { return r.CPUMeasured }},
		{"cpu_hours_lost", "CPU-h lost", "CPU-hours", true, func(r *Row) any { return r.CPULost }},
		memHeld,
		{"memory_used_percent", "Memory used", unitPercent, false, func(r *Row) any { return r.MemoryUsed }},
		{"memory_gib_hours_unused", "GiB-h unused", "GiB-hours", true, func(r *Row) any { return r.MemoryIdle }},
		{"job_hours_asked", "Job-h asked", unitHours, true, func(r *Row) any { return r.TimeAsked }},
		{"job_hours_ran", "Job-h ran", unitHours, true, func(r *Row) any { return r.TimeRan }},
		{"time_used_percent", "Time used", unitPercent, false, func(r *Row) any { return r.TimeUsed }},
	},
	Cost: {
		jobsColumn,
		{"cost", "Cost", unitMoney, false, func(r *Row) any { return r.CostAll }},
		{"cost_gpu", "Of GPUs", unitMoney, false, func(r *Row) any { return r.CostGPU }},
		{"cost_cpu", "Of CPUs", unitMoney, false, func(r *Row) any { return r.CostCPU }},
		{"cost_memory", "Of memory", unitMoney, false, func(r *Row) any { return r.CostMemory }},
		gpuHeld, cpuHeld,
		{"gpu_hours_unpriced", "GPU-h unpriced", "GPU-hours", false, func(r *Row) any { return r.GPUUnpriced }},
	},
}

// columnsOf are the columns of a report.
func columnsOf(r *Report) (out []Column) {
	by := r.By
	if r.Kind == Fairness {
		if by = []Key{ByAccount}; slices.Contains(r.By, ByUser) {
			by = []Key{ByAccount, ByUser}
		}
	}
	for _, k := range by {
		out = append(out, keyColumns[k])
	}
	for _, c := range kindColumns[r.Kind] {
		if c.Name == "gpu_hours_free" && !slices.ContainsFunc(r.Rows, func(x Row) bool { return x.GPUFree != nil }) {
			continue
		}
		if c.Unit == unitMoney && r.Currency != "" {
			c.Unit = r.Currency
		}
		out = append(out, c)
	}
	return out
}

// Table is the report as a table: what every form but JSON shows.
func (r *Report) Table() *Table {
	t := &Table{Columns: columnsOf(r)}
	for i := range r.Rows {
		t.Rows = append(t.Rows, rowValues(t.Columns, &r.Rows[i]))
	}
	if r.Total != nil {
		t.Total = rowValues(t.Columns, r.Total)
		for i, c := range t.Columns {
			if c.Unit == "" {
				t.Total[i] = Value{Text: "total", Exact: "total", IsText: true}
				break
			}
		}
	}
	return t
}

func rowValues(columns []Column, r *Row) (out []Value) {
	for i := range columns {
		switch x := columns[i].about(r).(type) {
		case string:
			out = append(out, Value{Text: x, Exact: x, IsText: true})
		case *float64:
			if x == nil {
				out = append(out, Value{})
				continue
			}
			out = append(out, Value{Text: columns[i].format(*x), Exact: strconv.FormatFloat(*x, 'f', -1, 64), Number: *x})
		}
	}
	return out
}

// IsNumber reports whether the values of a column are numbers.
func (c *Column) IsNumber() bool { return c.Unit != "" }

// format writes a number for people.
func (c *Column) format(x float64) string {
	switch c.Unit {
	case unitPercent:
		return percentText(x)
	case unitSeconds:
		return secondsText(int64(x))
	case unitCount:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case unitRatio:
		if c.Name == "shares" && x < 0 {
			return "parent"
		}
		return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 2, 64), ".00")
	}
	if strings.HasPrefix(c.Name, "cost") {
		return moneyText(x)
	}
	return hoursText(x)
}

// percentText is "12 %".
func percentText(x float64) string {
	if x > 0 && x < 0.95 {
		return strconv.FormatFloat(x, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(x, 'f', 0, 64) + " %"
}

// hoursText has three digits that count.
func hoursText(x float64) string {
	switch a := math.Abs(x); {
	case x == 0:
		return "0"
	case a < 0.001:
		return "<0.001"
	case a < 0.1:
		return strconv.FormatFloat(x, 'f', 3, 64)
	case a < 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case a < 1000:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

// moneyText has two digits behind the point.
func moneyText(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// secondsText is "5 s", "14 min 3 s", "2 h 14 min", "3 d 4 h".
func secondsText(n int64) string {
	two := func(a int64, unit string, b int64, small string) string {
		if b == 0 {
			return strconv.FormatInt(a, 10) + " " + unit
		}
		return strconv.FormatInt(a, 10) + " " + unit + " " + strconv.FormatInt(b, 10) + " " + small
	}
	switch {
	case n < 60:
		return strconv.FormatInt(n, 10) + " s"
	case n < hour:
		return two(n/60, "min", n%60, "s")
	case n < 24*hour:
		return two(n/hour, "h", n%hour/60, "min")
	}
	return two(n/(24*hour), "d", n%(24*hour)/hour, "h")
}

// sortUnknown sorts rows that have no place of their own, by name.
func sortUnknown(rows []Row) {
	slices.SortFunc(rows, func(x, y Row) int {
		if c := strings.Compare(x.Account, y.Account); c != 0 {
			return c
		}
		return strings.Compare(x.User, y.User)
	})
}
