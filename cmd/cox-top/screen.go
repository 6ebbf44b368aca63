package main

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView(m.screenText())
	v.AltScreen = true
	v.WindowTitle = "cox top"
	return v
}

// screenText is the text of the screen: two lines of head, the list or a card, two
// lines of foot, and never more lines than the terminal has.
func (m *model) screenText() string {
	p := m.printerPage()
	lines := []string{m.summaryLine(p), m.tabsLine(p)}
	switch shown := m.shownMode(); {
	case shown == reading:
		lines = append(lines, m.cardLines(p)...)
	case shown == following && m.log != nil:
		lines = append(lines, m.logRows(p)...)
	default:
		lines = append(lines, m.listLines(p)...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	if len(lines) > m.height-1 {
		lines = lines[:max(m.height-1, 0)]
	}
	lines = append(lines, m.footLine(p))
	return strings.Join(lines, "\n")
}

// shownMode is what is on the screen below a line that is typed.
func (m *model) shownMode() mode {
	if m.mode == filtering || m.mode == commanding {
		return m.under
	}
	return m.mode
}

// summaryLine is the first line: which server, and how full.
func (m *model) summaryLine(p printer.Page) string {
	if !m.have {
		if m.lost != nil {
			return p.Paint(printer.Bad, printer.Cut(printer.Clean(m.lost.Error()), m.width))
		}
		return printer.Cut("asking the server …", m.width)
	}
	count := map[string]int{}
	var devices, busy int
	var cpus, used float64
	for i := range m.seen.nodes {
		n := &m.seen.nodes[i]
		count[n.State]++
		devices += len(n.Devices)
		busy += printer.Busy(n.Devices)
		cpus += n.CPUs
		used += n.CPUsUsed
	}
	running, waiting := 0, 0
	for i := range m.seen.jobs {
		if m.seen.jobs[i].State == "PENDING" {
			waiting += m.seen.jobs[i].Jobs()
		} else {
			running++
		}
	}
	text := fmt.Sprintf("%s on %s   %s   nodes %d up", printer.Clean(m.seen.info.Name), printer.Clean(m.seen.info.Host), p.Now.In(p.Zone).Format("15:04:05"), count["up"])
	for _, s := range []string{"draining", "down", "unknown"} {
		if count[s] > 0 {
			text += fmt.Sprintf(" %d %s", count[s], s)
		}
	}
	if devices > 0 {
		text += fmt.Sprintf("   GPUs %d/%d", busy, devices)
	}
	text += fmt.Sprintf("   CPUs %s/%s   %d running   %d waiting", printer.Number(used), printer.Number(cpus), running, waiting)
	return p.Paint(printer.Strong, printer.Cut(text, m.width))
}

// tabsLine is the second line: the views, the filter and the order.
func (m *model) tabsLine(p printer.Page) string {
	var plain string
	var b strings.Builder
	for i, name := range viewNames {
		label := fmt.Sprintf(" %d %s ", i+1, name)
		plain += label
		if view(i) == m.view {
			label = m.reverseVideo(label)
		}
		b.WriteString(label)
	}
	if printer.Width(plain) > m.width {
		return printer.Cut(plain, m.width)
	}
	l := m.currentList()
	order := "sorted by " + sorts[m.view][l.sort].name
	if l.down {
		order += ", reversed"
	}
	if l.filter != "" {
		order = "/" + l.filter + "   " + order
	}
	room := m.width - printer.Width(plain) - 3
	if room > 10 {
		b.WriteString("   " + p.Paint(printer.Dim, printer.Cut(order, room)))
	}
	return b.String()
}

func (m *model) reverseVideo(s string) string {
	if !m.colour {
		return "[" + strings.TrimSpace(s) + "]"
	}
	return "\x1b[7m" + s + "\x1b[0m"
}

// footLine is the last line: a question, a message, or the keys.
func (m *model) footLine(p printer.Page) string {
	switch {
	case m.mode == confirming:
		return p.Paint(printer.Bad, printer.Cut(fmt.Sprintf("cancel %s? y n", m.subject), m.width))
	case m.mode == filtering:
		return printer.Cut("/"+*m.typedFilter()+"▏  Enter keeps it, Esc removes it", m.width)
	case m.mode == commanding:
		return m.commandText(p)
	case m.lost != nil && m.have:
		return p.Paint(printer.Bad, printer.Cut("no answer, this is old: "+printer.Clean(m.lost.Error()), m.width))
	case m.message != "":
		return p.Paint(printer.Warn, printer.Cut(m.message, m.width))
	case m.mode == reading:
		return p.Paint(printer.Dim, printer.Cut("Esc back   ↑ ↓ scroll", m.width))
	case m.mode == following && m.log != nil && m.log.err != nil && len(m.log.lines) > 0:
		return p.Paint(printer.Bad, printer.Cut(printer.Clean(m.log.err.Error()), m.width))
	case m.mode == following:
		return p.Paint(printer.Dim, printer.Cut("Esc back   ↑↓ scroll   f follow   w fold   / filter   e error output   ? keys", m.width))
	}
	return p.Paint(printer.Dim, printer.Cut("Enter show   l logs   s shell   w why   ^d cancel   / filter   : command   o sort   Tab view   ? keys   q quit", m.width))
}

// commandText is the command line, with what Tab would make of it behind the text.
func (m *model) commandText(p printer.Page) string {
	text := ":" + m.line.text
	rest := strings.TrimPrefix(m.proposal(), m.line.text)
	if m.proposal() == "" {
		rest = ""
	}
	if c := findCommand(strings.TrimSpace(m.line.text)); c != nil && m.line.text != "" {
		rest += "   " + c.about
	}
	cut := printer.Cut(text+"▏"+rest, m.width)
	if len(cut) <= len(text)+len("▏") {
		return cut
	}
	at := len(text) + len("▏")
	return cut[:at] + p.Paint(printer.Dim, cut[at:])
}

// ruledTitle is a title on a line over the whole width.
func (m *model) ruledTitle(title string) string {
	return printer.Cut("── "+title+" "+strings.Repeat("─", max(m.width-printer.Width(title)-4, 0)), m.width)
}

// cardBody is the text of a card in lines that fit.
func (m *model) cardBody() (lines []string) {
	for _, l := range strings.Split(strings.TrimRight(m.card.text, "\n"), "\n") {
		lines = append(lines, wrapLine(l, m.width)...)
	}
	return lines
}

func (m *model) cardLines(p printer.Page) []string {
	body := m.cardBody()
	lines := []string{"", p.Paint(printer.Strong, m.ruledTitle(m.card.title))}
	return append(lines, body[min(m.scroll, len(body)):]...)
}

// wrapLine breaks a long line at blanks; what follows is indented like a fact.
func wrapLine(s string, width int) []string {
	var lines []string
	for printer.Width(s) > width && width > 20 {
		at := strings.LastIndexByte(printer.Cut(s, width), ' ')
		if at < width/2 {
			at = len(strings.TrimSuffix(printer.Cut(s, width), "…"))
		}
		lines = append(lines, s[:at])
		s = strings.Repeat(" ", 10) + strings.TrimLeft(s[at:], " ")
	}
	return append(lines, printer.Cut(s, width))
}
