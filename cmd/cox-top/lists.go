package main

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// field is a piece of a row: its text, and how it is drawn where it is not cut.
type field struct {
	text, drawn string
	right       bool
	most        int // columns; 0: no bound
}

// listLines are the header and the rows on the screen.
func (m *model) listLines(p printer.Page) []string {
	rows, l := m.viewRows(), m.currentList()
	if !m.have {
		return nil
	}
	if len(rows) == 0 {
		return []string{"", p.Paint(printer.Dim, printer.Cut(m.emptyText(), m.width))}
	}
	end := min(l.top+m.visibleRows(), len(rows))
	shown := [][]field{m.columnTitles()}
	for i := l.top; i < end; i++ {
		shown = append(shown, m.rowFields(p, &rows[i]))
	}
	widths := make([]int, len(shown[0]))
	for _, fs := range shown {
		for i := range fs {
			if fs[i].most > 0 {
				fs[i].text = printer.Cut(fs[i].text, fs[i].most)
			}
			widths[i] = max(widths[i], printer.Width(fs[i].text))
		}
	}
	lines := []string{p.Paint(printer.Strong, joinFields(shown[0], widths, m.width-1, false))}
	for i, fs := range shown[1:] {
		if l.top+i == l.cursor {
			lines = append(lines, m.markLine(joinFields(fs, widths, m.width-1, false)))
			continue
		}
		lines = append(lines, " "+joinFields(fs, widths, m.width-1, true))
	}
	lines[0] = " " + lines[0]
	return lines
}

// markLine is the line under the cursor, over the whole width.
func (m *model) markLine(s string) string {
	if !m.colour {
		return ">" + s
	}
	return "\x1b[7m " + s + strings.Repeat(" ", max(m.width-printer.Width(s)-1, 0)) + "\x1b[0m"
}

func (m *model) emptyText() string {
	switch {
	case m.currentList().filter != "":
		return "nothing matches /" + m.currentList().filter + "   (Esc removes the filter)"
	case m.view == nodesView:
		return "no nodes"
	case m.view == jobsView:
		return "nothing runs"
	case m.view == poolsView:
		return "no pools"
	}
	return "nothing waits"
}

// joinFields makes a line of at most width columns.
func joinFields(fs []field, widths []int, width int, drawn bool) string {
	var b strings.Builder
	at := 0
	for i, f := range fs {
		room := min(widths[i], width-at)
		if room <= 0 {
			break
		}
		text := printer.Cut(f.text, room)
		blank := strings.Repeat(" ", room-printer.Width(text))
		if drawn && f.drawn != "" && text == f.text {
			text = f.drawn
		}
		if f.right {
			b.WriteString(blank + text)
		} else {
			b.WriteString(text + blank)
		}
		at += widths[i] + 2
		if i < len(fs)-1 && at < width {
			b.WriteString("  ")
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func (m *model) columnTitles() []field {
	var names []string
	switch m.view {
	case nodesView:
		names = []string{"NODE", "STATE", "DEVICES", ">GPUS", ">USE", ">CPUS", "LOAD", ">MEMORY", "JOBS OR WHY"}
	case jobsView:
		names = []string{"JOB", "NAME", "USER", ">TIME", ">LIMIT", "DONE", ">GPUS", ">USE", ">NODES", "SPREAD", "WHERE"}
	case poolsView:
		names = []string{"POOL", "ENGINE", "STATE", ">NODES", ">GPUS", ">JOBS", "GANGS", "WHY"}
	default:
		names = []string{"JOB", "NAME", "USER", ">WAITED", ">PRIORITY", ">NODES", ">GPUS", ">LIMIT", "WHY"}
	}
	fs := make([]field, len(names))
	for i, n := range names {
		fs[i].text, fs[i].right = strings.TrimPrefix(n, ">"), strings.HasPrefix(n, ">")
	}
	return fs
}

func (m *model) rowFields(p printer.Page, r *row) []field {
	switch m.view {
	case nodesView:
		return m.nodeFields(p, r.node)
	case jobsView:
		return m.jobFields(p, r.job)
	case poolsView:
		return poolFields(p, r.pool)
	}
	return m.queueFields(p, r.job)
}

func (m *model) nodeFields(p printer.Page, n *api.Node) []field {
	bar, drawn := m.deviceBar(n.Devices)
	gpus := ""
	if len(n.Devices) > 0 {
		gpus = fmt.Sprintf("%d/%d", printer.Busy(n.Devices), len(n.Devices))
	}
	load := gaugeBar(n.CPUsUsed, n.CPUs, 8)
	last := strings.Join(n.Jobs, " ")
	if n.State != "up" {
		last = strings.TrimSpace(last + "  " + n.Why)
	}
	return []field{
		{text: printer.Clean(n.Name), most: 24},
		tonedField(p, n.State, printer.NodeTone(n.State)),
		{text: bar, drawn: drawn},
		{text: gpus, right: true},
		{text: m.nodeUse(n), right: true},
		{text: printer.Number(n.CPUsUsed) + "/" + printer.Number(n.CPUs), right: true},
		tonedField(p, load, printer.Accent),
		{text: printer.Bytes(n.MemoryUsed) + "/" + printer.Bytes(n.Memory), right: true},
		{text: printer.Clean(last)},
	}
}

func tonedField(p printer.Page, s string, t printer.Tone) field {
	return field{text: printer.Clean(s), drawn: p.Paint(t, printer.Clean(s))}
}

// deviceBar is a cell for each device: full where a job holds it, in the job's
// colour, half where somebody else uses it, light where it is free.
func (m *model) deviceBar(devices []api.Device) (text, drawn string) {
	sorted := slices.Clone(devices)
	slices.SortFunc(sorted, func(a, b api.Device) int { return a.Index - b.Index })
	var t, d strings.Builder
	for i := range sorted {
		cell := "░"
		switch {
		case len(sorted[i].Jobs) > 0:
			cell = "█"
			d.WriteString(m.jobColour(sorted[i].Jobs[0], cell))
		case sorted[i].Foreign > 0:
			cell = "▒"
			d.WriteString(cell)
		default:
			d.WriteString(cell)
		}
		t.WriteString(cell)
	}
	return t.String(), d.String()
}

// colours are those in which jobs are told apart.
var colours = []int{32, 33, 34, 35, 36, 91, 92, 93, 94, 95, 96}

// jobColour paints a text in a job's colour, the same in every view.
func (m *model) jobColour(name, s string) string {
	if !m.colour {
		return s
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return "\x1b[" + strconv.Itoa(colours[int(h.Sum32())%len(colours)]) + "m" + s + "\x1b[0m"
}

// gaugeBar is a bar of so many columns.
func gaugeBar(used, all float64, width int) string {
	if all <= 0 {
		return ""
	}
	n := int(used/all*float64(width) + 0.5)
	n = max(min(n, width), 0)
	return strings.Repeat("█", n) + strings.Repeat("░", width-n)
}

func (m *model) jobFields(p printer.Page, r *printer.QueueRow) []field {
	ran := p.Now.Sub(r.Started)
	limit, done := "", ""
	if r.Limit > 0 {
		limit, done = printer.Elapsed(r.Limit), gaugeBar(ran.Seconds(), r.Limit.Seconds(), 8)
	}
	state := printer.StateTone(r.State)
	spread := m.gangCells(r.NodeList)
	return []field{
		tonedField(p, r.Name, state),
		{text: printer.Clean(r.JobName), most: 24},
		{text: printer.Clean(r.User), most: 12},
		{text: printer.Elapsed(ran), right: true},
		{text: limit, right: true},
		tonedField(p, done, printer.Accent),
		{text: gpuText(r.GPUs), right: true},
		{text: m.jobUse(r), right: true},
		{text: strconv.Itoa(r.Nodes), right: true},
		{text: spread, drawn: m.jobColour(r.Name, spread)},
		{text: printer.Clean(r.NodeList)},
	}
}

func gpuText(n float64) string {
	if n == 0 {
		return ""
	}
	return printer.Number(n)
}

// spreadMost is how many columns the picture of a gang's spread may have.
const spreadMost = 32

// gangCells is a cell for each node of the fleet, full where the gang sits. A large
// fleet has several nodes in a cell.
func (m *model) gangCells(nodes string) string {
	names, err := hostlist.Expand(nodes)
	if err != nil || len(m.seen.nodes) == 0 {
		return ""
	}
	on := make(map[string]bool, len(names))
	for _, n := range names {
		on[n] = true
	}
	per := (len(m.seen.nodes) + spreadMost - 1) / spreadMost
	cells := make([]int, (len(m.seen.nodes)+per-1)/per)
	for i := range m.seen.nodes {
		if on[m.seen.nodes[i].Name] {
			cells[i/per]++
		}
	}
	var b strings.Builder
	for i, n := range cells {
		all := min(per, len(m.seen.nodes)-i*per)
		switch {
		case n == 0:
			b.WriteString("·")
		case n == all:
			b.WriteString("█")
		default:
			b.WriteString("▄")
		}
	}
	return b.String()
}

func (m *model) queueFields(p printer.Page, r *printer.QueueRow) []field {
	limit, why := "", r.ReasonText
	if r.Limit > 0 {
		limit = printer.Elapsed(r.Limit)
	}
	if why == "" {
		why = r.Reason
	}
	if !r.StartsBy.IsZero() {
		why += "; starts by " + p.Time(r.StartsBy)
	}
	return []field{
		tonedField(p, r.Name, printer.Warn),
		{text: printer.Clean(r.JobName), most: 24},
		{text: printer.Clean(r.User), most: 12},
		{text: printer.Elapsed(p.Now.Sub(r.Submitted)), right: true},
		{text: strconv.FormatInt(r.Priority, 10), right: true},
		{text: strconv.Itoa(r.Nodes), right: true},
		{text: gpuText(r.GPUs), right: true},
		{text: limit, right: true},
		{text: printer.Clean(why)},
	}
}

func poolFields(p printer.Page, l *api.Pool) []field {
	name := l.Name
	if l.Default {
		name += "*"
	}
	return []field{
		tonedField(p, name, printer.Accent),
		{text: printer.Clean(strings.TrimSpace(l.Engine + " " + l.Version)), most: 24},
		tonedField(p, l.State, printer.PoolTone(l.State)),
		{text: strconv.Itoa(l.Nodes), right: true},
		{text: fmt.Sprintf("%d/%d", l.DevicesUsed, l.Devices), right: true},
		{text: strconv.Itoa(l.Jobs), right: true},
		{text: printer.Clean(l.Gang)},
		{text: printer.Clean(l.Why)},
	}
}
