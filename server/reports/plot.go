package reports

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/report"
)

// plot is a chart of bars.
type plot struct {
	Title         string
	Width, Height float64
	Legend        []series
	Ticks         []tick
	Levels        []tick // lines that lie, with their labels at the left
	Rows          []plotRow
	Left          int // rows of the report that it leaves out
}

type series struct{ Name, Class string }

type tick struct {
	X, Y  float64
	Label string
}

type plotRow struct {
	Label, Name    string // Name is whole
	LabelX, LabelY float64
	Bars           []bar
}

type bar struct {
	Class, Name string
	X, Y, W, H  float64
}

// Sizes of a plot, in its own units.
const (
	plotWidth  = 900
	labelWidth = 220
	laneHeight = 10
	rowGap     = 10
	axisHeight = 24
	mostRows   = 25
	longLabel  = 30 // characters
)

// lanes are the bars of a row, one below the other; the values of a lane follow each other.
type lanes [][]value

// value is a part of a lane. Where a plot is of positions, it ends there.
type value struct {
	class string
	x     float64
	text  string
}

// chart says how a kind of report is drawn.
type chart struct {
	title  string
	legend []series
	lanes  func(*report.Row) lanes
	scale  func(float64) float64 // nil: linear
	ticks  []tick                // of a scale, with X as values
}

func valueOf(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

func numberText(x float64) string {
	switch {
	case x >= 1000:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// logarithm puts seconds on an axis on which 1 s, 1 min and 1 h are apart.
func logarithm(x float64) float64 { return math.Log10(1 + x) }

var waitTicks = []tick{{0, 0, "0"}, {9, 0, "10 s"}, {59, 0, "1 min"}, {599, 0, "10 min"}, {3599, 0, "1 h"}, {35999, 0, "10 h"}, {863999, 0, "10 d"}, {8639999, 0, "100 d"}}

// chartsOf are the charts of a report.
func chartsOf(r *report.Report) []chart {
	single := func(class string, x *float64, what string) []value {
		return []value{{class, valueOf(x), what + ": " + numberText(valueOf(x))}}
	}
	hasGPUs := r.Total != nil && valueOf(r.Total.GPUHeld) > 0
	switch r.Kind {
	case report.Usage:
		legend := []series{{"asked", "c0"}, {"allocated", "c1"}, {"used", "c2"}}
		if !hasGPUs {
			return []chart{{"CPU-hours", legend, func(x *report.Row) lanes {
				return lanes{single("c0", x.CPUAsked, "asked"), single("c1", x.CPUHeld, "allocated"), single("c2", x.CPUUsed, "used")}
			}, nil, nil}}
		}
		return []chart{{"GPU-hours", legend, func(x *report.Row) lanes {
			return lanes{single("c0", x.GPUAsked, "asked"), single("c1", x.GPUHeld, "allocated"), single("c2", x.GPUUsed, "used")}
		}, nil, nil}}
	case report.Waits:
		return []chart{{"Wait of jobs that started", []series{{"up to the median", "c2"}, {"to 90 %", "c1"}, {"to 99 %", "c0"}}, func(x *report.Row) lanes {
			var one []value
			for _, v := range []struct {
				class, what string
				x           *float64
			}{{"c2", "median", x.WaitMedian}, {"c1", "90 %", x.WaitP90}, {"c0", "99 %", x.WaitP99}} {
				one = append(one, value{v.class, valueOf(v.x), v.what + ": " + numberText(valueOf(v.x)) + " s"})
			}
			return lanes{one}
		}, logarithm, waitTicks}}
	case report.Fairness:
		return []chart{{"Per cent of the machine", []series{{"share", "c0"}, {"use", "c1"}}, func(x *report.Row) lanes {
			return lanes{single("c0", x.Share, "share, %"), single("c1", x.UsePart, "use, %")}
		}, nil, nil}}
	case report.Efficiency:
		legend := []series{{"used", "c2"}, {"idle", "c1"}, {"not measured", "c0"}}
		stack := func(held, measured, idle float64) lanes {
			used := measured - idle
			return lanes{{
				{"c2", used, "used: " + numberText(used)},
				{"c1", measured, "idle: " + numberText(idle)},
				{"c0", max(held, measured), "not measured: " + numberText(max(held-measured, 0))},
			}}
		}
		if !hasGPUs {
			return []chart{{"CPU-hours allocated", legend, func(x *report.Row) lanes {
				return stack(valueOf(x.CPUHeld), valueOf(x.CPUMeasured), valueOf(x.CPUIdle))
			}, nil, nil}}
		}
		return []chart{{"GPU-hours allocated", legend, func(x *report.Row) lanes {
			return stack(valueOf(x.GPUHeld), valueOf(x.GPUMeasured), valueOf(x.GPUIdle))
		}, nil, nil}}
	case report.Cost:
		return []chart{{strings.TrimSpace("Cost " + r.Currency), []series{{"GPUs", "c2"}, {"CPUs", "c1"}, {"memory", "c0"}}, func(x *report.Row) lanes {
			gpu, cpu, memory := valueOf(x.CostGPU), valueOf(x.CostCPU), valueOf(x.CostMemory)
			return lanes{{
				{"c2", gpu, "GPUs: " + numberText(gpu)},
				{"c1", gpu + cpu, "CPUs: " + numberText(cpu)},
				{"c0", gpu + cpu + memory, "memory: " + numberText(memory)},
			}}
		}, nil, nil}}
	}
	return nil
}

// plotsOf draws a report.
func plotsOf(r *report.Report) (out []plot) {
	if p, ok := drawOverTime(r); ok {
		out = append(out, p)
	}
	for _, c := range chartsOf(r) {
		if p, ok := c.draw(r); ok {
			out = append(out, p)
		}
	}
	return out
}

// draw draws a chart; ok is false if it would be empty.
func (c *chart) draw(r *report.Report) (p plot, ok bool) {
	rows := r.Rows[:min(len(r.Rows), mostRows)]
	scale, most := c.scale, 0.0
	if scale == nil {
		scale = func(x float64) float64 { return x }
	}
	all := make([]lanes, len(rows))
	for i := range rows {
		all[i] = c.lanes(&rows[i])
		for _, lane := range all[i] {
			for _, v := range lane {
				most = max(most, v.x)
			}
		}
	}
	if most <= 0 {
		return p, false
	}
	p = plot{Title: c.title, Width: plotWidth, Legend: c.legend, Left: len(r.Rows) - len(rows)}
	unit := (plotWidth - labelWidth - 40) / scale(most)
	y := 4.0
	for i := range rows {
		name := nameOf(r, &rows[i])
		row := plotRow{Name: name, Label: shorten(name), LabelX: labelWidth - 8, LabelY: y + float64(len(all[i]))*laneHeight/2 + 4}
		for _, lane := range all[i] {
			at := 0.0
			for _, v := range lane {
				end := scale(v.x)
				if end > at {
					row.Bars = append(row.Bars, bar{v.class, v.text, round(labelWidth + at*unit), y, round((end - at) * unit), laneHeight - 1})
				}
				at = max(at, end)
			}
			y += laneHeight
		}
		y += rowGap
		p.Rows = append(p.Rows, row)
	}
	p.Height = y + axisHeight
	ticks := c.ticks
	if ticks == nil {
		ticks = evenTicks(most)
	}
	for _, t := range ticks {
		if t.X <= most*1.0001 {
			p.Ticks = append(p.Ticks, tick{round(labelWidth + scale(t.X)*unit), p.Height - 6, t.Label})
		}
	}
	return p, true
}

// evenTicks are round numbers from 0 up to a number, four to ten of them.
func evenTicks(most float64) (out []tick) {
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for _, part := range []float64{0.2, 0.5, 1, 2} {
		if most/(step*part) <= 6 {
			step *= part
			break
		}
	}
	for i := 0; float64(i)*step <= most; i++ {
		out = append(out, tick{X: float64(i) * step, Label: strconv.FormatFloat(float64(i)*step, 'g', 6, 64)})
	}
	return out
}

func round(x float64) float64 { return math.Round(x*10) / 10 }

// nameOf is what a row is of: its keys.
func nameOf(r *report.Report, row *report.Row) string {
	var parts []string
	for _, k := range r.By {
		of := map[report.Key]string{report.ByAccount: row.Account, report.ByUser: row.User, report.ByQOS: row.QOS, report.ByPool: row.Pool, report.ByService: row.Service}
		if r.Kind == report.Fairness && k == report.ByUser && row.User == "" {
			continue
		}
		parts = append(parts, cmp.Or(of[k], "–"))
	}
	if row.Size != "" {
		parts = append(parts, row.Size)
	}
	return strings.Join(parts, " · ")
}

func shorten(s string) string {
	if r := []rune(s); len(r) > longLabel {
		return string(r[:longLabel-1]) + "…"
	}
	return s
}
