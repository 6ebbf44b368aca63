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
	case reading:
		return m.pressCard(key)
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
	case "tab", "right", "l":
		m.view = (m.view + 1) % views
	case "shift+tab", "left", "h":
		m.view = (m.view + views - 1) % views
	case "1", "2", "3":
		m.view = view(key[0] - '1')
	case "/":
		m.mode = filtering
	case "esc":
		l.filter = ""
	case "s":
		l.sort = (l.sort + 1) % len(sorts[m.view])
	case "S":
		l.down = !l.down
	case "r":
		return m.startLook()
	case "enter":
		return m.openRow(rows)
	case "w":
		return m.onJob(rows, func(name string) tea.Cmd { return m.src.whyCard(firstJob(name)) })
	case "c":
		return m.onJob(rows, func(name string) tea.Cmd {
			m.mode, m.victim, m.subject = confirming, name, rows[l.cursor].jobSubject()
			return nil
		})
	case "?":
		m.card, m.scroll, m.mode = cardMsg{"keys", keyHelp}, 0, reading
	}
	return nil
}

const keyHelp = `1 2 3, Tab     nodes, jobs, queue
↑ ↓ PgUp PgDn  move; g and G go to the ends
/              filter: rows with this text; Esc removes it
s, S           sort by the next column; the other way round
Enter          show the node or the job
w              why does it wait
c              cancel the job, after a question
r              look now
q              quit`

// openRow shows the card of the row under the cursor.
func (m *model) openRow(rows []row) tea.Cmd {
	if len(rows) == 0 {
		return nil
	}
	r := rows[m.currentList().cursor]
	if m.view != nodesView {
		return m.src.jobCard(firstJob(r.key))
	}
	for i := range m.seen.nodes {
		if n := &m.seen.nodes[i]; n.Name == r.key {
			p := m.printerPage()
			p.Colour = false
			m.card, m.scroll, m.mode = cardMsg{n.Name, printer.Node(p, n)}, 0, reading
		}
	}
	return nil
}

// onJob does something to the job under the cursor.
func (m *model) onJob(rows []row, do func(name string) tea.Cmd) tea.Cmd {
	switch {
	case m.view == nodesView:
		m.message = "choose a job first: 2 lists those that run, 3 those that wait"
	case len(rows) > 0:
		return do(rows[m.currentList().cursor].key)
	}
	return nil
}

func (m *model) pressFilter(key, text string) {
	l := m.currentList()
	switch key {
	case "enter":
		m.mode = browsing
	case "esc":
		m.mode, l.filter = browsing, ""
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(l.filter)
		l.filter = l.filter[:len(l.filter)-n]
	case "ctrl+u":
		l.filter = ""
	default:
		l.filter += printer.Clean(text)
	}
}

func (m *model) pressCard(key string) tea.Cmd {
	lines := strings.Count(m.card.text, "\n") + 1
	switch key {
	case "q", "esc", "enter":
		m.mode = browsing
	case "up", "k":
		m.scroll = max(m.scroll-1, 0)
	case "down", "j":
		m.scroll = max(min(m.scroll+1, lines-m.visibleRows()), 0)
	}
	return nil
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
