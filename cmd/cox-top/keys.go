package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// handleKey takes a key: its name, and the text that it types.
func (m *model) handleKey(key, text string) tea.Cmd {
	if key == "ctrl+c" {
		return tea.Quit
	}
	defer func() { m.made = nil; m.settleCursor() }()
	switch m.mode {
	case filtering:
		m.pressFilter(key, text)
		return nil
	case commanding:
		return m.pressCommand(key, text)
	case reading:
		return m.pressCard(key)
	case following:
		return m.pressLog(key)
	case confirming:
		return m.pressConfirm(key)
	}
	m.message = ""
	return m.pressList(key)
}

func (m *model) pressList(key string) tea.Cmd {
	l, rows := m.currentList(), m.viewRows()
	switch key {
	case "q":
		return tea.Quit
	case "up", "k":
		m.moveCursor(rows, l.cursor-1)
	case "down", "j":
		m.moveCursor(rows, l.cursor+1)
	case "pgup", "ctrl+b":
		m.moveCursor(rows, l.cursor-m.visibleRows())
	case "pgdown", "ctrl+f", "space":
		m.moveCursor(rows, l.cursor+m.visibleRows())
	case "home", "g":
		m.moveCursor(rows, 0)
	case "end", "G":
		m.moveCursor(rows, len(rows)-1)
	case "tab", "right":
		m.view = (m.view + 1) % views
	case "shift+tab", "left":
		m.view = (m.view + views - 1) % views
	case "1", "2", "3", "4":
		m.switchView(view(key[0] - '1'))
	case "/":
		m.startFilter()
	case ":":
		m.startCommand()
	case "esc":
		m.goBack()
	case "o":
		l.sort = (l.sort + 1) % len(sorts[m.view])
	case "O":
		l.down = !l.down
	case "r":
		return m.startLook()
	case "?":
		return m.showHelp()
	default:
		return m.pressOnRow(key, rows)
	}
	return nil
}

// pressOnRow takes a key that is about the row under the cursor.
func (m *model) pressOnRow(key string, rows []row) tea.Cmd {
	switch key {
	case "enter", "d":
		return m.openRow(rows)
	case "l":
		return m.onJob(rows, func(name string) tea.Cmd { return m.openLog(firstJob(name), false) })
	case "s":
		return m.onJob(rows, func(name string) tea.Cmd { return m.openShell(firstJob(name)) })
	case "w":
		return m.onJob(rows, func(name string) tea.Cmd { return m.src.whyCard(firstJob(name)) })
	case "c", "ctrl+d", "ctrl+k":
		return m.onJob(rows, func(name string) tea.Cmd {
			m.confirmCancel(name)
			return nil
		})
	}
	return nil
}

// goBack removes the filter, or shows the view before.
func (m *model) goBack() {
	l := m.currentList()
	switch n := len(m.before); {
	case l.filter != "":
		l.filter = ""
	case n > 0:
		m.view, m.before = m.before[n-1], m.before[:n-1]
	}
}

const keyHelp = `1 2 3 4, Tab    nodes, running jobs, queue, pools
↑ ↓ PgUp PgDn   move; g and G go to the ends
/               filter: rows with this text or regular expression; ! before it: rows without
Esc             back: from a card or the output, from a filter, to the view before
Enter, d        show the node, the job or the pool
l               output of the job, followed
s               a shell in the job; exit comes back
w               why the job waits
c, ^d, ^k       cancel the job, after a question
o, O            sort by the next column; the other way round
r               look now
q, ^c           quit

In the output of a job:
↑ ↓ PgUp PgDn   scroll, which stops following; G or End follows again
f               follow or hold
w               fold long lines or cut them
/               only lines with this text
e               error output, where it is a file of its own; and back
r               read it again

Command line (Tab completes, ↑ the lines before):
`

// showHelp shows the keys and the commands.
func (m *model) showHelp() tea.Cmd {
	var b strings.Builder
	b.WriteString(keyHelp)
	for _, c := range commands {
		fmt.Fprintf(&b, ":%-15s%s", c.name, c.about)
		fmt.Fprintf(&b, "   (:%s)\n", strings.Join(c.aliases, " :"))
	}
	m.openCard(cardMsg{"keys", b.String()})
	return nil
}

// openRow shows the card of the row under the cursor.
func (m *model) openRow(rows []row) tea.Cmd {
	if len(rows) == 0 {
		return nil
	}
	r := rows[m.currentList().cursor]
	p := m.printerPage()
	p.Colour = false
	switch {
	case r.job != nil:
		return m.src.jobCard(firstJob(r.key))
	case r.node != nil:
		m.openCard(cardMsg{r.node.Name, printer.Node(p, r.node) + m.useLines(r.node)})
	default:
		m.openCard(cardMsg{r.pool.Name, printer.Pool(p, r.pool)})
	}
	return nil
}

// onJob does something to the job under the cursor.
func (m *model) onJob(rows []row, do func(name string) tea.Cmd) tea.Cmd {
	switch {
	case m.view != jobsView && m.view != queueView:
		m.message = "choose a job first: 2 lists those that run, 3 those that wait"
	case len(rows) > 0:
		return do(rows[m.currentList().cursor].key)
	}
	return nil
}

// startFilter opens the line of the filter, of the list or of the output.
func (m *model) startFilter() { m.under, m.mode = m.mode, filtering }

// typedFilter is the filter that is typed.
func (m *model) typedFilter() *string {
	if m.under == following && m.log != nil {
		return &m.log.filter
	}
	return &m.currentList().filter
}

func (m *model) pressFilter(key, text string) {
	f := m.typedFilter()
	switch key {
	case "enter":
		m.mode = m.under
	case "esc":
		m.mode, *f = m.under, ""
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(*f)
		*f = (*f)[:len(*f)-n]
	case "ctrl+u":
		*f = ""
	default:
		*f += printer.Clean(text)
	}
	if m.log != nil && m.under == following {
		m.log.follow = true
	}
}

func (m *model) pressCard(key string) tea.Cmd {
	lines := len(m.cardBody())
	scroll := func(by int) { m.scroll = max(min(m.scroll+by, lines-m.visibleRows()), 0) }
	switch key {
	case "q", "esc", "enter":
		m.mode = browsing
	case "up", "k":
		scroll(-1)
	case "down", "j":
		scroll(1)
	case "pgup", "ctrl+b":
		scroll(-m.visibleRows())
	case "pgdown", "ctrl+f", "space":
		scroll(m.visibleRows())
	case "home", "g":
		scroll(-lines)
	case "end", "G":
		scroll(lines)
	case ":":
		m.startCommand()
	}
	return nil
}

// confirmCancel asks whether a job is to be cancelled.
func (m *model) confirmCancel(name string) {
	m.closeLog()
	m.mode, m.victim, m.subject = confirming, name, printer.Clean(name)
	for i := range m.seen.jobs {
		if j := &m.seen.jobs[i]; j.Name == name {
			m.subject = jobSubject(j)
		}
	}
}

func (m *model) pressConfirm(key string) tea.Cmd {
	m.mode = browsing
	if key == "y" || key == "Y" {
		m.message = fmt.Sprintf("cancelling %s …", m.victim)
		return m.src.cancelJob(m.victim)
	}
	m.message = "nothing was cancelled"
	return nil
}
