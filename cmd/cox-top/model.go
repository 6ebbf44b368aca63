package main

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// view is one of the lists.
type view int

const (
	nodesView view = iota
	jobsView
	queueView
	poolsView
	views
)

var viewNames = [views]string{"nodes", "jobs", "queue", "pools"}

func viewNamed(name string) (view, bool) {
	for i, n := range viewNames {
		if n == name {
			return view(i), true
		}
	}
	return 0, false
}

// list is the state of one view: where the cursor stands, what is filtered, how it
// is sorted. The cursor stays on the row of the same key when rows come and go.
type list struct {
	key    string // of the row under the cursor; "" before the first look
	cursor int
	top    int // first row on the screen
	sort   int
	down   bool // sorted the other way round
	filter string
}

// mode says where keys go.
type mode int

const (
	browsing   mode = iota
	filtering       // of the list or of the log
	commanding      // the line after a colon
	reading         // a card over the list
	following       // the output of a job over the list
	confirming      // of a cancel
)

// model is all of the program's state. Update is its only writer.
type model struct {
	src    source
	now    func() time.Time
	colour bool

	width, height int
	view          view
	lists         [views]list
	mode          mode

	seen    snapshot
	made    []row // of the view, as filter and order have it; nil: to be made
	have    bool  // there was a look
	lost    error
	looking bool // a look is under way
	again   bool // something changed meanwhile
	began   time.Time
	rest    time.Time // no look before: a large queue costs the server something
	resting bool      // a look is to begin then

	use       useMsg // of the GPUs of this machine
	askingUse bool

	card    cardMsg
	scroll  int
	log     *logPane // nil: none is open
	line    commandLine
	under   mode   // where the filter or the command line was opened: browsing, reading or following
	before  []view // views that Esc goes back to, the last one last
	victim  string // job that a confirmation is about
	subject string // how the confirmation names it
	message string
}

func newModel(src source, first view, colour bool, now func() time.Time) *model {
	m := &model{src: src, view: first, colour: colour, now: now, width: 80, height: 24}
	m.lists[queueView].sort = 0
	return m
}

// tickMsg asks for a look because time has gone by.
type tickMsg struct{}

func tick() tea.Cmd { return tea.Tick(lookEvery, func(time.Time) tea.Msg { return tickMsg{} }) }

// Init asks for the first look.
func (m *model) Init() tea.Cmd { return tea.Batch(m.startLook(), tick()) }

// restMsg ends the rest after a look.
type restMsg struct{}

// startLook begins a look unless one is under way, which is then repeated, or the
// last one cost so much that the next has to wait.
func (m *model) startLook() tea.Cmd {
	if m.looking {
		m.again = true
		return nil
	}
	if wait := m.rest.Sub(m.now()); wait > 0 {
		if m.resting {
			return nil
		}
		m.resting = true
		return tea.Tick(wait, func(time.Time) tea.Msg { return restMsg{} })
	}
	m.looking, m.began = true, m.now()
	return m.src.fetchAll
}

// Update takes one message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tickMsg:
		return m, tea.Batch(m.startLook(), m.startUse(), tick())
	case changedMsg:
		return m, m.startLook()
	case useMsg:
		m.use, m.askingUse = msg, false
	case restMsg:
		m.resting = false
		return m, m.startLook()
	case seenMsg:
		first := !m.have
		m.seen, m.have, m.lost, m.made = msg.snapshot, true, nil, nil
		if first {
			return m, tea.Batch(m.endLook(), m.startUse())
		}
		return m, m.endLook()
	case lostMsg:
		m.lost = msg.err
		return m, m.endLook()
	case cardMsg:
		m.openCard(msg)
	case logMsg:
		return m, m.takeLog(msg)
	case doneMsg:
		m.message = printer.Clean(msg.text)
		return m, m.startLook()
	case tea.KeyPressMsg:
		return m, m.handleKey(msg.String(), msg.Text)
	}
	m.settleCursor()
	return m, nil
}

// openCard shows a text over the list.
func (m *model) openCard(c cardMsg) {
	m.closeLog()
	m.card, m.scroll, m.mode = c, 0, reading
}

// switchView shows another list; Esc comes back to this one.
func (m *model) switchView(to view) {
	if to == m.view {
		return
	}
	m.before = append(m.before, m.view)
	if len(m.before) > 16 {
		m.before = m.before[1:]
	}
	m.view = to
}

// endLook makes four parts of rest for one part of work.
func (m *model) endLook() tea.Cmd {
	m.looking = false
	m.rest = m.now().Add(4 * m.now().Sub(m.began))
	m.settleCursor()
	if m.again {
		m.again = false
		return m.startLook()
	}
	return nil
}

// settleCursor puts the cursor of the list back on its row, and the row on the screen.
func (m *model) settleCursor() {
	l, rows := m.currentList(), m.viewRows()
	for i := range rows {
		if rows[i].key == l.key {
			l.cursor = i
			break
		}
	}
	m.moveCursor(rows, l.cursor)
}

func (m *model) currentList() *list { return &m.lists[m.view] }

// moveCursor puts the cursor on a row.
func (m *model) moveCursor(rows []row, to int) {
	l := m.currentList()
	l.cursor = max(min(to, len(rows)-1), 0)
	l.key = ""
	if len(rows) > 0 {
		l.key = rows[l.cursor].key
	}
	room := m.visibleRows()
	l.top = max(min(l.top, l.cursor), l.cursor-room+1, 0)
	l.top = max(min(l.top, len(rows)-room), 0)
}

// visibleRows is the number of rows that the screen has.
func (m *model) visibleRows() int { return max(m.height-5, 1) }

// printerPage is how package show is to write for this screen.
func (m *model) printerPage() printer.Page {
	return printer.Page{Now: m.now(), Zone: time.Local, Width: m.width, Colour: m.colour}
}
