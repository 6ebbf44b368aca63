package printer

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// percent is a part of a whole: "5 %"; "" where there is no whole.
func percent(part, whole float64) string {
	if whole <= 0 {
		return ""
	}
	p := 100 * part / whole
	if p > 0 && p < 0.95 {
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + " %"
}

// printUsage says what a job used of what it asked for. Nothing is said of what is not known.
func printUsage(c *card, j *api.Job) {
	u := j.Used
	if u == nil {
		return
	}
	label := "used"
	say := func(text string) {
		if text != "" {
			c.fact(label, text)
			label = ""
		}
	}
	say(memoryUsage(j))
	say(cpuUsage(c.p, j))
	say(gpuUsage(u.GPUs))
	if u.Total.Has(rusage.IO) && u.Total.Read+u.Total.Written > 0 {
		say("disk: read " + Bytes(u.Total.Read) + ", wrote " + Bytes(u.Total.Written))
	}
}

// memoryUsage is "memory: asked 64 GiB, used 3.1 GiB, 5 %", and of several nodes that which used most.
func memoryUsage(j *api.Job) string {
	u := j.Used
	if !u.Total.Has(rusage.Memory) {
		return ""
	}
	_, _, _, asked := sumClaims(j.Claims)
	text := "memory: used " + Bytes(u.Total.Memory)
	if asked > 0 {
		text = fmt.Sprintf("memory: asked %s, used %s, %s", Bytes(asked), Bytes(u.Total.Memory), percent(float64(u.Total.Memory), float64(asked)))
	}
	var most *rusage.Node
	for i := range u.Nodes {
		if n := &u.Nodes[i]; n.Has(rusage.Memory) && (most == nil || n.Memory > most.Memory) {
			most = n
		}
	}
	if len(u.Nodes) < 2 || most == nil {
		return text
	}
	text += fmt.Sprintf("; most on %s: %s", most.Name, Bytes(most.Memory))
	var there int64
	for _, c := range j.Claims {
		if c.Node == most.Name {
			there += c.Memory
		}
	}
	if there > 0 {
		text += " of " + Bytes(there)
	}
	return text
}

// cpuUsage is "CPUs: 26 % busy, 1 h 2 min of CPU time".
func cpuUsage(p Page, j *api.Job) string {
	u := j.Used
	if !u.Total.Has(rusage.CPU) {
		return ""
	}
	text := Duration(u.Total.CPUTime()) + " of CPU time"
	if busy := percent(cpuShare(j, p.Now)); busy != "" {
		return "CPUs: " + busy + " busy, " + text
	}
	return "CPUs: " + text
}

// cpuShare is the CPU time that a job used, and that its CPUs had in the time that it ran, seconds.
func cpuShare(j *api.Job, now time.Time) (used, had float64) {
	_, _, cpus, _ := sumClaims(j.Claims)
	r := QueueRowOf(j)
	if j.Started.IsZero() {
		return j.Used.Total.CPUTime().Seconds(), 0
	}
	return j.Used.Total.CPUTime().Seconds(), cpus * r.timeSpent(now).Seconds()
}

// gpuUsage is "GPUs: 22 % busy, 12 GiB of 80 GiB of memory".
func gpuUsage(g rusage.GPUs) string {
	if g.Count == 0 {
		return ""
	}
	text := fmt.Sprintf("GPUs: %s busy", percent(g.Busy, 100))
	if g.Count == 1 {
		text = fmt.Sprintf("GPU: %s busy", percent(g.Busy, 100))
	}
	switch {
	case g.Of > 0:
		text += fmt.Sprintf(", %s of %s of memory", Bytes(g.Memory), Bytes(g.Of))
	case g.Memory > 0:
		text += ", " + Bytes(g.Memory) + " of memory"
	}
	return text
}

// usageShares are the cells of a job in a table: per cent of its CPUs, memory and GPUs; "" where
// that is not known.
func usageShares(j *api.Job, now time.Time) (cpu, memory, gpu string) {
	u := j.Used
	if u == nil {
		return "", "", ""
	}
	if u.Total.Has(rusage.CPU) {
		cpu = percent(cpuShare(j, now))
	}
	if _, _, _, asked := sumClaims(j.Claims); u.Total.Has(rusage.Memory) {
		memory = percent(float64(u.Total.Memory), float64(asked))
	}
	if u.GPUs.Count > 0 {
		gpu = percent(u.GPUs.Busy, 100)
	}
	return cpu, memory, gpu
}

// seriesColumns is the width of a line of a series at most.
const seriesColumns = 60

// Series draws how a job used what it holds: a character for an interval or a few, as high as the highest
// value in them. Nothing is drawn where nobody measured.
func Series(p Page, s *api.Series) string {
	c := &card{p: p}
	c.head("%s %s", s.Name, s.State)
	if s.Points == 0 {
		c.fact("series", cmp.Or(s.Note, "nobody measured it: it ran for a few seconds, its engine measures nothing, or the series was removed"))
		return c.b.String()
	}
	step := time.Duration(s.Step * float64(time.Second))
	c.fact("from", fmt.Sprintf("%s to %s, each %s", p.Time(s.Start), p.Time(s.Start.Add(time.Duration(s.Points)*step)), Duration(step)))
	cpus := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	bytes := func(v float64) string { return Bytes(int64(v)) }
	share := func(v float64) string { return percent(v, 100) }
	c.drawn("CPUs", s.Points, s.CPUs, s.HeldCPUs, cpus)
	c.drawn("memory", s.Points, s.Memory, float64(s.HeldMemory), bytes)
	c.drawn("GPUs", s.Points, s.GPUs, 100, share)
	var of float64
	for i := range s.Devices {
		of += float64(s.Devices[i].Of)
	}
	c.drawn("GPU mem", s.Points, s.GPUMemory, of, bytes)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		c.drawn(n.Node, s.Points, n.CPUs, 0, func(v float64) string { return cpus(v) + " CPUs" })
		c.drawn("", s.Points, n.Memory, 0, bytes)
	}
	if len(s.Devices) > 1 {
		for i := range s.Devices {
			d := &s.Devices[i]
			name := fmt.Sprintf("GPU %d", d.Index)
			if len(s.Nodes) > 0 {
				name = d.Node + " " + strconv.Itoa(d.Index)
			}
			if d.Profile != "" {
				name += " " + d.Profile
			}
			c.drawn(name, s.Points, d.Busy, 100, share)
			c.drawn("", s.Points, d.Memory, float64(d.Of), bytes)
		}
	}
	if s.LeftNodes > 0 {
		c.fact("", fmt.Sprintf("and %s that are counted above alone", Count(s.LeftNodes, "node")))
	}
	return c.b.String()
}

// drawn draws one line of a series against a whole, or its own peak where that is more.
func (c *card) drawn(label string, points int, line []*float64, whole float64, show func(float64) string) {
	var sum, peak float64
	known := 0
	for _, v := range line {
		if v != nil {
			sum, peak, known = sum+*v, max(peak, *v), known+1
		}
	}
	if known == 0 {
		return
	}
	text := fmt.Sprintf("%s  average %s, highest %s", spark(points, line, max(whole, peak)), show(sum/float64(known)), show(peak))
	if whole > 0 && whole != 100 {
		text += " of " + show(whole)
	}
	c.fact(label, text)
}

// spark draws a line of a series in at most seriesColumns characters.
func spark(points int, line []*float64, top float64) string {
	const levels = "▁▂▃▄▅▆▇█"
	columns := min(points, seriesColumns)
	var out []rune
	for i := range columns {
		highest, known := 0.0, false
		for k := i * points / columns; k < (i+1)*points/columns && k < len(line); k++ {
			if line[k] != nil {
				highest, known = max(highest, *line[k]), true
			}
		}
		switch level := []rune(levels); {
		case !known:
			out = append(out, ' ')
		case top <= 0:
			out = append(out, level[0])
		default:
			out = append(out, level[min(int(highest/top*float64(len(level))), len(level)-1)])
		}
	}
	return string(out)
}
