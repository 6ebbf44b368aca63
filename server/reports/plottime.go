package reports

import (
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/report"
)

// Sizes of a plot over time.
const (
	timeLeft   = 80
	timeHeight = 170
	mostTimes  = 8 // labels
)

// drawOverTime draws what was held in the parts of the window, as bars that stand; ok is false if
// there is nothing.
func drawOverTime(r *report.Report) (p plot, ok bool) {
	if r.OverTime == nil || len(r.OverTime.Points) < 2 {
		return p, false
	}
	points := r.OverTime.Points
	title, of := "GPU-hours allocated", func(x *report.Point) float64 { return x.GPUHours }
	switch {
	case r.Kind == report.Cost:
		title, of = strings.TrimSpace("Cost "+r.Currency), func(x *report.Point) float64 { return valueOf(x.Cost) }
	case r.Total == nil || valueOf(r.Total.GPUHeld) == 0:
		title, of = "CPU-hours allocated", func(x *report.Point) float64 { return x.CPUHours }
	}
	most := 0.0
	for i := range points {
		most = max(most, of(&points[i]))
	}
	if most <= 0 {
		return p, false
	}
	step := time.Duration(r.OverTime.Step) * time.Second
	form := "Jan 02"
	if step < 24*time.Hour {
		form = "Jan 02 15:04"
	}
	p = plot{Title: title + " in each " + stepText(step), Width: plotWidth, Height: timeHeight + axisHeight + 4}
	unit := float64(timeHeight-10) / most
	for _, t := range evenTicks(most) {
		p.Levels = append(p.Levels, tick{timeLeft, round(timeHeight - t.X*unit), t.Label})
	}
	width := float64(plotWidth-timeLeft-20) / float64(len(points))
	every := (len(points) + mostTimes - 1) / mostTimes
	row := plotRow{}
	for i := range points {
		x, n := timeLeft+float64(i)*width, of(&points[i])
		if i%every == 0 {
			p.Ticks = append(p.Ticks, tick{round(x + width/2), p.Height - 6, points[i].From.Format(form)})
		}
		if n > 0 {
			row.Bars = append(row.Bars, bar{"c1", points[i].From.Format("2006-01-02 15:04") + ": " + numberText(n), round(x + width*0.1), round(timeHeight - n*unit), round(width * 0.8), round(n * unit)})
		}
	}
	p.Rows = []plotRow{row}
	return p, true
}

// stepText is the length of a part: hour, 6 hours, day, 7 days.
func stepText(step time.Duration) string {
	return map[time.Duration]string{
		time.Hour: "hour", 6 * time.Hour: "6 hours", 24 * time.Hour: "day", 7 * 24 * time.Hour: "7 days", 30 * 24 * time.Hour: "30 days", 365 * 24 * time.Hour: "year",
	}[step]
}
