package study

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// chart writes one drawing as inline SVG. Colours follow the page's style.
type chart struct {
	strings.Builder
	w, h       float64 // of the plot, without margins
	x0, y0     float64
	xmax, ymax float64
}

const (
	marginLeft   = 56
	marginBottom = 34
	marginTop    = 8
)

func newChart(title string, w, h, xmax, ymax float64) *chart {
	c := &chart{w: w, h: h, x0: marginLeft, y0: marginTop, xmax: max(xmax, 1e-9), ymax: max(ymax, 1e-9)}
	fmt.Fprintf(c, `<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s"><title>%s</title>`, w+marginLeft+12, h+marginTop+marginBottom, html.EscapeString(title), html.EscapeString(title))
	return c
}

func (c *chart) pointAt(x, y float64) (float64, float64) {
	return c.x0 + c.w*x/c.xmax, c.y0 + c.h*(1-y/c.ymax)
}

// drawAxes draws both with labels at round values.
func (c *chart) drawAxes(x, y func(float64) string) {
	for _, v := range roundTicks(c.ymax) {
		_, py := c.pointAt(0, v)
		fmt.Fprintf(c, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`, c.x0, c.x0+c.w, py, py, c.x0-6, py+4, html.EscapeString(y(v)))
	}
	for _, v := range roundTicks(c.xmax) {
		px, _ := c.pointAt(v, 0)
		fmt.Fprintf(c, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, px, c.y0+c.h+18, html.EscapeString(x(v)))
	}
}

// roundTicks are about five round values from 0 up.
func roundTicks(most float64) []float64 {
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for most/step < 3 {
		step /= 2
	}
	var out []float64
	for v := 0.0; v <= most*1.0001; v += step {
		out = append(out, v)
	}
	return out
}

// drawLine draws values at equal distances.
func (c *chart) drawLine(series int, values []float64) {
	fmt.Fprintf(c, `<polyline class="s%d" points="`, series%6)
	for i, v := range values {
		x, y := c.pointAt(c.xmax*(float64(i)+0.5)/float64(len(values)), min(v, c.ymax))
		fmt.Fprintf(c, "%.1f,%.1f ", x, y)
	}
	c.WriteString(`"/>`)
}

func (c *chart) drawRect(class string, x, y, w, h float64, title string) {
	fmt.Fprintf(c, `<rect class="%s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"><title>%s</title></rect>`, class, x, y, max(w, 0.4), max(h, 0.4), html.EscapeString(title))
}

func (c *chart) endChart() string {
	c.WriteString("</svg>")
	return c.String()
}

// drawBars draws groups of bars, one of each group for each series.
func drawBars(title string, groups, series []string, value func(group, series int) float64, label func(float64) string) string {
	most := 0.0
	for g := range groups {
		for s := range series {
			most = max(most, value(g, s))
		}
	}
	c := newChart(title, 860, 220, float64(len(groups)), most*1.05)
	c.drawAxes(func(float64) string { return "" }, label)
	slot := c.w / float64(max(1, len(groups)))
	for g, name := range groups {
		for s := range series {
			v := value(g, s)
			x, y := c.pointAt(float64(g), v)
			wide := slot * 0.8 / float64(len(series))
			c.drawRect(fmt.Sprintf("b%d", s%6), x+slot*0.1+wide*float64(s), y, wide, c.y0+c.h-y, fmt.Sprintf("%s, %s: %s", name, series[s], label(v)))
		}
		fmt.Fprintf(c, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, c.x0+slot*(float64(g)+0.5), c.y0+c.h+18, html.EscapeString(name))
	}
	return c.endChart()
}
