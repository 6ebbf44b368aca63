package main

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// Bounds of the output that is kept of a job.
const (
	logTail      = 2000     // lines that are asked for at first
	logLinesMost = 20_000   // lines that are kept
	logBytesMost = 16 << 20 // bytes that are kept
	logLineMost  = 64 << 10 // bytes of a line
)

// logReader reads the output of a job as it is written. next waits for more and is called
// by one goroutine at a time; close may come from another and ends it.
type logReader interface {
	next() tea.Msg // a logMsg
	close()
}

// logMsg is more output, or the end of it.
type logMsg struct {
	from  logReader
	data  []byte
	ended bool  // the job has ended, this is all
	err   error // it broke off
}

// logPane is the output of one job over the list.
type logPane struct {
	target string // 7, 7.5
	job    string
	stderr bool
	reader logReader

	lines   []string // clean
	partial []byte   // of a line that has not ended
	size    int      // bytes of lines
	dropped int      // lines that are not kept any more
	ended   bool
	err     error

	filter string
	follow bool // the end is on the screen
	wrap   bool
	top    int // first line on the screen, of those that match, where the end is not
}

// openLog shows the output of a job over the list.
func (m *model) openLog(target string, stderr bool) tea.Cmd {
	m.closeLog()
	job, _, _ := strings.Cut(target, ".")
	l := &logPane{target: target, job: job, stderr: stderr, follow: true, wrap: true}
	l.reader = m.src.openLog(target, stderr)
	m.log, m.mode = l, following
	return l.reader.next
}

// closeLog ends the reading of a log.
func (m *model) closeLog() {
	if m.log == nil {
		return
	}
	m.log.reader.close()
	m.log = nil
	if m.mode == following {
		m.mode = browsing
	}
}

// takeLog takes more output and asks for what follows.
func (m *model) takeLog(msg logMsg) tea.Cmd {
	l := m.log
	if l == nil || l.reader != msg.from {
		return nil // closed meanwhile
	}
	l.addOutput(msg.data)
	if l.ended, l.err = msg.ended, msg.err; l.ended || l.err != nil {
		return nil
	}
	return l.reader.next
}

// addOutput appends what was written.
func (l *logPane) addOutput(data []byte) {
	text := append(l.partial, data...)
	for {
		at := slices.Index(text, '\n')
		if at < 0 {
			break
		}
		l.addLine(text[:at])
		text = text[at+1:]
	}
	for len(text) > logLineMost {
		l.addLine(text[:logLineMost])
		text = text[logLineMost:]
	}
	l.partial = slices.Clone(text)
	drop := max(len(l.lines)-logLinesMost, 0)
	for _, s := range l.lines[:drop] {
		l.size -= len(s)
	}
	for l.size > logBytesMost {
		l.size -= len(l.lines[drop])
		drop++
	}
	if drop > 0 {
		if !l.follow {
			l.top = max(l.top-newMatcher(l.filter).count(l.lines[:drop]), 0)
		}
		l.lines = slices.Clone(l.lines[drop:])
		l.dropped += drop
	}
}

func (l *logPane) addLine(raw []byte) {
	s := cleanOutput(raw)
	l.lines, l.size = append(l.lines, s), l.size+len(s)
}

// cleanOutput is a line as a terminal would have left it, without colours: what a
// progress bar has written over is gone.
func cleanOutput(raw []byte) string {
	s := strings.TrimRight(string(raw), "\r")
	if at := strings.LastIndexByte(s, '\r'); at >= 0 {
		s = s[at+1:]
	}
	return printer.Clean(strings.ReplaceAll(ansi.Strip(strings.ToValidUTF8(s, "\ufffd")), "\t", "    "))
}

// shownLines are the lines that the filter keeps, that which has not ended too.
func (l *logPane) shownLines() []string {
	lines := l.lines
	if len(l.partial) > 0 {
		lines = append(slices.Clip(lines), cleanOutput(l.partial))
	}
	want := newMatcher(l.filter)
	if want.isEmpty() {
		return lines
	}
	var kept []string
	for _, s := range lines {
		if want.matches(s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// count is how many lines match.
func (m matcher) count(lines []string) (n int) {
	for _, s := range lines {
		if m.isEmpty() || m.matches(s) {
			n++
		}
	}
	return n
}

// endTop is the first line on a screen that shows the end.
func (l *logPane) endTop(lines []string, width, rows int) int {
	at := len(lines)
	for used := 0; at > 0; at-- {
		used += len(l.foldLine(lines[at-1], width))
		if used > rows {
			break
		}
	}
	if at == len(lines) && at > 0 {
		at-- // one line that is longer than the screen
	}
	return at
}

// foldLine is a line as rows of the screen.
func (l *logPane) foldLine(s string, width int) []string {
	if !l.wrap || width < 2 {
		return []string{printer.Cut(s, width)}
	}
	var rows []string
	for printer.Width(s) > width {
		at := len(strings.TrimSuffix(printer.Cut(s, width+1), "…"))
		if at == 0 || at >= len(s) {
			break
		}
		rows = append(rows, s[:at])
		s = s[at:]
	}
	return append(rows, printer.Cut(s, width))
}

// logRows are the title and the rows of the output.
func (m *model) logRows(p printer.Page) []string {
	l := m.log
	lines := l.shownLines()
	out := []string{"", p.Paint(printer.Strong, m.ruledTitle(m.logTitle(len(lines))))}
	room := m.visibleRows()
	var body []string
	if len(lines) == 0 {
		body = append(body, p.Paint(printer.Dim, printer.Cut(m.noOutputText(), m.width)))
	}
	top := l.top
	if l.follow {
		top = l.endTop(lines, m.width, room)
	}
	for i := min(top, len(lines)); i < len(lines) && len(body) < room; i++ {
		body = append(body, l.foldLine(lines[i], m.width)...)
	}
	if l.follow && len(body) > room {
		body = body[len(body)-room:]
	}
	return append(out, body[:min(len(body), room)]...)
}

// logTitle says whose output it is, and what becomes of it.
func (m *model) logTitle(shown int) string {
	l := m.log
	title := "output of " + l.target
	if l.stderr {
		title = "error output of " + l.target
	}
	if j := m.liveJob(l.job); j != nil {
		title += " " + printer.Clean(j.JobName) + ": " + j.State
	}
	switch {
	case l.err != nil:
		title += ", broken off"
	case l.ended:
		title += ", ended"
	case l.follow:
		title += ", followed"
	default:
		title += ", held"
	}
	title += fmt.Sprintf(", %d lines", shown)
	if l.dropped > 0 {
		title += fmt.Sprintf(" (%d earlier ones are in the file)", l.dropped)
	}
	return title
}

// noOutputText says why there is nothing to see.
func (m *model) noOutputText() string {
	l := m.log
	j := m.liveJob(l.job)
	switch {
	case l.err != nil:
		return printer.Clean(l.err.Error())
	case l.filter != "" && len(l.lines) > 0:
		return "no line matches /" + l.filter
	case j != nil && j.State == "PENDING":
		return printer.Clean(fmt.Sprintf("job %s waits: %s; its output comes when it has started", l.job, waitReason(j)))
	case l.ended:
		return "the job wrote nothing here"
	}
	return "nothing was written yet"
}

func waitReason(j *printer.QueueRow) string {
	if j.ReasonText != "" {
		return j.ReasonText
	}
	return j.Reason
}

// liveJob is a job of the last look; nil: none of this name.
func (m *model) liveJob(name string) *printer.QueueRow {
	for i := range m.seen.jobs {
		if j := &m.seen.jobs[i]; j.Name == name || firstJob(j.Name) == name {
			return j
		}
	}
	return nil
}

// pressLog takes a key over the output of a job.
func (m *model) pressLog(key string) tea.Cmd {
	l, room := m.log, m.visibleRows()
	m.message = ""
	switch key {
	case "q", "esc":
		if key == "esc" && l.filter != "" {
			l.filter, l.follow = "", true
			return nil
		}
		m.closeLog()
	case "up", "k":
		m.scrollLog(-1)
	case "down", "j":
		m.scrollLog(1)
	case "pgup", "ctrl+b":
		m.scrollLog(-room)
	case "pgdown", "ctrl+f", "space":
		m.scrollLog(room)
	case "home", "g":
		l.top, l.follow = 0, false
	case "end", "G":
		l.follow = true
	case "f", "s":
		m.scrollLog(0)
	case "w":
		l.wrap = !l.wrap
	case "e":
		return m.openLog(l.target, !l.stderr)
	case "r":
		return m.openLog(l.target, l.stderr)
	case "/":
		m.startFilter()
	case ":":
		m.startCommand()
	case "?":
		return m.showHelp()
	}
	return nil
}

// scrollLog moves so many lines down; 0 stops following the end, or begins it again. At the
// end it is followed.
func (m *model) scrollLog(by int) {
	l := m.log
	end := l.endTop(l.shownLines(), m.width, m.visibleRows())
	if by == 0 {
		l.top, l.follow = end, !l.follow
		return
	}
	if l.follow {
		l.top = end
	}
	l.top = max(min(l.top, end)+by, 0)
	l.follow = by > 0 && l.top >= end
}
