package main

import (
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// argument is what a command takes.
type argument int

const (
	noArgument argument = iota
	filterArgument
	jobArgument
)

// command is one of the command line, which a colon opens as in k9s.
type command struct {
	name    string
	aliases []string
	takes   argument
	about   string
}

// commands are those of the command line. The first of those that begin with what is
// typed is proposed.
var commands = []command{
	{"jobs", []string{"j", "jo", "job", "running"}, filterArgument, "running jobs [that match TEXT]"},
	{"nodes", []string{"n", "no", "node"}, filterArgument, "nodes [that match TEXT]"},
	{"pools", []string{"p", "po", "pool"}, filterArgument, "pools [that match TEXT]"},
	{"queue", []string{"qu", "pending", "waiting"}, filterArgument, "waiting jobs [that match TEXT]"},
	{"show", []string{"describe", "d"}, jobArgument, "show JOB"},
	{"logs", []string{"log", "l"}, jobArgument, "output of JOB, JOB.RANK or JOB.STEP.RANK"},
	{"shell", []string{"sh", "s", "exec"}, jobArgument, "a shell in JOB, where JOB.RANK runs, or on JOB.NODE"},
	{"why", []string{"w"}, jobArgument, "why JOB waits"},
	{"cancel", []string{"c", "kill", "delete"}, jobArgument, "cancel JOB, after a question"},
	{"help", []string{"h", "?"}, noArgument, "the keys"},
	{"quit", []string{"q", "q!", "exit"}, noArgument, "quit"},
}

// findCommand is the command of a name, of an alias, or the only one that begins so.
func findCommand(word string) *command {
	var begin []*command
	for i := range commands {
		c := &commands[i]
		switch {
		case c.name == word || slices.Contains(c.aliases, word):
			return c
		case strings.HasPrefix(c.name, word):
			begin = append(begin, c)
		}
	}
	if word != "" && len(begin) == 1 {
		return begin[0]
	}
	return nil
}

// commandLine is what is typed after the colon.
type commandLine struct {
	text   string
	chosen int      // of the proposals
	past   []string // lines of this session, oldest first
	at     int      // in past; len(past): a new one
}

// startCommand opens the command line.
func (m *model) startCommand() {
	m.under, m.mode = m.mode, commanding
	m.line.text, m.line.chosen, m.line.at = "", 0, len(m.line.past)
}

// proposals are the lines that the text may become.
func (m *model) proposals() []string {
	word, rest, hasArgument := strings.Cut(m.line.text, " ")
	var lines []string
	if !hasArgument {
		for _, c := range commands {
			if word != "" && c.name != word && strings.HasPrefix(c.name, word) {
				lines = append(lines, c.name)
			}
		}
		return lines
	}
	c := findCommand(word)
	if c == nil || c.takes != jobArgument {
		return nil
	}
	for i := range m.seen.jobs {
		if name := m.seen.jobs[i].Name; name != rest && strings.HasPrefix(name, rest) {
			lines = append(lines, word+" "+name)
		}
	}
	return lines
}

// proposal is the line that Tab completes to; "": none.
func (m *model) proposal() string {
	all := m.proposals()
	if len(all) == 0 {
		return ""
	}
	return all[m.line.chosen%len(all)]
}

// pressCommand takes a key on the command line.
func (m *model) pressCommand(key, text string) tea.Cmd {
	l := &m.line
	switch key {
	case "enter":
		return m.runCommand(strings.TrimSpace(l.text))
	case "esc":
		m.mode = m.under
	case "tab", "right", "ctrl+f":
		if full := m.proposal(); full != "" {
			l.text, l.chosen = full, 0
		}
	case "up":
		if l.text == "" || l.at < len(l.past) {
			m.recallCommand(-1)
			return nil
		}
		l.chosen = max(l.chosen-1, 0)
	case "down":
		if l.at < len(l.past) {
			m.recallCommand(1)
			return nil
		}
		l.chosen = min(l.chosen+1, max(len(m.proposals())-1, 0))
	case "backspace":
		if l.text == "" {
			m.mode = m.under
		}
		_, n := utf8.DecodeLastRuneInString(l.text)
		l.text, l.chosen = l.text[:len(l.text)-n], 0
	case "ctrl+u", "ctrl+w":
		l.text, l.chosen = "", 0
	default:
		l.text, l.chosen = l.text+printer.Clean(text), 0
	}
	if key != "up" && key != "down" {
		l.at = len(l.past)
	}
	return nil
}

// recallCommand shows the line before or after that which is shown.
func (m *model) recallCommand(by int) {
	l := &m.line
	l.at = max(min(l.at+by, len(l.past)), 0)
	l.text, l.chosen = "", 0
	if l.at < len(l.past) {
		l.text = l.past[l.at]
	}
}

// runCommand does what a line says.
func (m *model) runCommand(line string) tea.Cmd {
	m.mode, m.message = m.under, ""
	if line == "" {
		return nil
	}
	m.line.past = append(m.line.past, line)
	word, arg, _ := strings.Cut(line, " ")
	arg = strings.TrimSpace(arg)
	c := findCommand(strings.ToLower(word))
	switch {
	case c == nil:
		m.message = "there is no command :" + word + "; ? lists them"
		if near := m.proposeFor(word); near != "" {
			m.message = "there is no command :" + word + "; did you mean :" + near + "? ? lists all"
		}
		return nil
	case c.takes == noArgument && arg != "":
		m.message = ":" + c.name + " takes nothing behind it"
		return nil
	case c.takes == jobArgument && arg == "":
		if arg = m.selectedJob(c.name == "logs" || c.name == "shell"); arg == "" {
			m.message = "which job? for example :" + c.name + " 7"
			return nil
		}
	}
	if v, ok := viewNamed(c.name); ok {
		m.closeLog()
		m.mode = browsing
		m.switchView(v)
		m.currentList().filter = strings.TrimPrefix(arg, "/")
		return nil
	}
	switch c.name {
	case "show":
		return m.src.jobCard(firstJob(arg))
	case "logs":
		return m.openLog(firstJob(arg), false)
	case "shell":
		return m.openShell(firstJob(arg))
	case "why":
		return m.src.whyCard(firstJob(arg))
	case "cancel":
		m.confirmCancel(arg)
		return nil
	case "help":
		return m.showHelp()
	}
	return tea.Quit
}

// proposeFor is the command that begins as a word does, or that the word begins with.
func (m *model) proposeFor(word string) string {
	for _, c := range commands {
		if strings.HasPrefix(c.name, word) || len(word) > 2 && strings.HasPrefix(c.name, word[:2]) {
			return c.name
		}
	}
	return ""
}

// selectedJob is the job whose output is open, with its rank where that is asked for, or the job under
// the cursor; "": none.
func (m *model) selectedJob(withRank bool) string {
	switch rows := m.viewRows(); {
	case m.log != nil && withRank:
		return m.log.target
	case m.log != nil:
		return m.log.job
	case m.view != jobsView && m.view != queueView || len(rows) == 0:
		return ""
	default:
		return rows[m.currentList().cursor].key
	}
}
