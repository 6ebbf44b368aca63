package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// withUUIDs gives devices the UUIDs GPU-NODE-INDEX.
func withUUIDs(nodes []api.Node) []api.Node {
	for i := range nodes {
		for k := range nodes[i].Devices {
			nodes[i].Devices[k].UUID = fmt.Sprintf("GPU-%s-%d", nodes[i].Name, k)
		}
	}
	return nodes
}

// TestUseOfGPUs: of those that are known; nothing is made up for the others.
func TestUseOfGPUs(t *testing.T) {
	m, _ := started(t, nodesView)
	if m.startUse() != nil {
		t.Error("nvidia-smi is asked although no GPU has a UUID")
	}
	s := seen()
	withUUIDs(s.nodes)
	s.nodes[2].Devices[0].Kind = "fpga"
	send(m, seenMsg{s}, tickMsg{}, tickMsg{})
	if !m.askingUse {
		t.Error("nvidia-smi is not asked")
	}
	send(m, useMsg{"GPU-v1-0": {busy: 10, memory: 1 << 30}, "GPU-v1-1": {busy: 30}, "": {busy: 99}})
	wants(t, m, ">v1    up        ████      4/4  20% of 2", "v2    up        ████      4/4   unknown", "v3    up        ░░░░      0/4   unknown")
	keys(m, "enter")
	wants(t, m, "use       gpu 0: 10% busy, 1 GiB of memory used", "gpu 3: unknown")
	keys(m, "esc", "=2")
	wants(t, m, "8  20% of 2      2")
}

func TestParseUse(t *testing.T) {
	got := parseUse("GPU-a, 22, 1024\nGPU-b, [N/A], 5\nNo devices were found\nGPU-c, 0, 0\n")
	if len(got) != 2 || got["GPU-a"] != (deviceUse{22, 1 << 30}) || got["GPU-c"] != (deviceUse{}) {
		t.Errorf("%v", got)
	}
}

// lastAsked is what was asked for last.
func lastAsked(a *asked) string { return strings.TrimSpace(a.what[len(a.what)-1]) }

func TestPools(t *testing.T) {
	m, _ := started(t, poolsView)
	wants(t, m, " [4 pools]", "k8s     kube v1.31  silent      3   0/0     0", "no answer for 2 min", "local*  local       up         12  8/48     1  strict")
	keys(m, "=/kube", "enter", "enter")
	wants(t, m, "── k8s ─", "k8s: engine kube v1.31, silent")
	keys(m, "esc", "=l")
	wants(t, m, "choose a job first")
}

// TestKeysOnAJob: those of k9s, on the job under the cursor.
func TestKeysOnAJob(t *testing.T) {
	for key, want := range map[string]string{"=d": "job 7", "enter": "job 7", "=w": "why 7", "=l": "logs 7", "=s": "shell 7"} {
		m, a := started(t, jobsView)
		keys(m, key)
		if got := lastAsked(a); got != want {
			t.Errorf("%s asked for %q, want %q", key, got, want)
		}
	}
	for _, key := range []string{"=c", "ctrl+d", "ctrl+k"} {
		m, a := started(t, jobsView)
		keys(m, key)
		wants(t, m, "cancel 7 train of anna? y n")
		keys(m, "=y")
		if got := lastAsked(a); got != "cancel 7" {
			t.Errorf("%s asked for %q", key, got)
		}
	}
}

func TestAWaitingJobHasNoShell(t *testing.T) {
	m, a := started(t, queueView)
	before := len(a.what)
	keys(m, "down", "=s")
	wants(t, m, "job 8 waits and has no processes yet")
	if len(a.what) != before {
		t.Errorf("asked for %q", lastAsked(a))
	}
}

func TestCommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"=:show 9_[1-4]": "job 9_1",
		"=:why 8":        "why 8",
		"=:logs 7.5":     "logs 7.5",
		"=:sh 7.3":       "shell 7.3",
		"=:describe 12":  "job 12",
		"=:l":            "logs 7", // of the job under the cursor
	} {
		m, a := started(t, jobsView)
		keys(m, line, "enter")
		if got := lastAsked(a); got != want {
			t.Errorf("%s asked for %q, want %q", line, got, want)
		}
	}
	for line, want := range map[string]string{
		"=:nodes":     "[1 nodes]",
		"=:j":         "[2 jobs]",
		"=:QU":        "[3 queue]",
		"=:pool":      "[4 pools]",
		"=:queue ben": "sweep",
		"=:job /7":    "train",
		"=:kill 8":    "cancel 8 sweep of ben? y n",
		"=:cancel":    "which job? for example :cancel 7",
		"=:s":         "which job? for example :shell 7",
		"=:nodse":     "there is no command :nodse; did you mean :nodes?",
		"=:xyz":       "there is no command :xyz; ? lists them",
		"=:quit now":  ":quit takes nothing behind it",
		"=:help":      ":shell",
	} {
		m, _ := started(t, nodesView)
		keys(m, line, "enter")
		if m.mode == reading {
			keys(m, "end")
		}
		if s := m.screenText(); !strings.Contains(s, want) {
			t.Errorf("%s: no %q on the screen\n%s", line, want, s)
		}
	}
	m, _ := started(t, queueView)
	keys(m, "=:queue ben", "enter")
	if s := m.screenText(); strings.Contains(s, "grid") {
		t.Errorf("the filter of the command line does nothing:\n%s", s)
	}
}

// TestCommandLineCompletes: names of commands, then of jobs, and lines of before.
func TestCommandLineCompletes(t *testing.T) {
	m, a := started(t, jobsView)
	keys(m, "=:po")
	wants(t, m, ":po▏ols")
	keys(m, "tab")
	wants(t, m, ":pools▏")
	keys(m, "enter", "=:s")
	wants(t, m, ":s▏how")
	keys(m, "down", "tab", "= ")
	wants(t, m, ":shell ▏7")
	keys(m, "tab", "enter")
	if got := lastAsked(a); got != "shell 7" {
		t.Errorf("asked for %q", got)
	}
	keys(m, "=:", "up")
	wants(t, m, ":shell 7▏")
	keys(m, "up")
	wants(t, m, ":pools▏")
	keys(m, "down", "down")
	wants(t, m, ":▏")
	keys(m, "backspace")
	if m.mode != browsing {
		t.Error("backspace on an empty line does not close it")
	}
}

// TestEscGoesBack: from the filter, then to the view before.
func TestEscGoesBack(t *testing.T) {
	m, _ := started(t, nodesView)
	keys(m, "=:queue ben", "enter", "esc")
	wants(t, m, "[3 queue]", "grid")
	keys(m, "esc")
	wants(t, m, "[1 nodes]")
	keys(m, "esc")
	wants(t, m, "[1 nodes]")
}

func TestFilterTakesPatterns(t *testing.T) {
	for filter, want := range map[string]string{"v1$|v2": "", "!7": "v3", "v1[0-2] up": "v10", "9_[": "nothing matches"} {
		m, _ := started(t, nodesView)
		keys(m, "=/"+filter, "enter")
		wants(t, m, want)
		if s := m.screenText(); filter == "!7" && strings.Contains(s, "v2 ") {
			t.Errorf("/!7 keeps a node of job 7:\n%s", s)
		}
	}
	m, _ := started(t, queueView)
	keys(m, "=/9_[1", "enter") // no pattern, and text all the same
	wants(t, m, "grid")
}

// output sends lines of a log.
func output(m *model, lines ...string) {
	send(m, logMsg{from: m.log.reader, data: []byte(strings.Join(lines, "\n") + "\n")})
}

func TestLogs(t *testing.T) {
	m, a := started(t, jobsView)
	keys(m, "=l")
	wants(t, m, "── output of 7 train: RUNNING, followed, 0 lines", "nothing was written yet")
	for i := range 100 {
		output(m, fmt.Sprintf("epoch %d", i))
	}
	send(m, logMsg{from: m.log.reader, data: []byte("half a li")})
	wants(t, m, "epoch 99", "half a li", "101 lines")
	if strings.Contains(m.screenText(), "epoch 50") {
		t.Error("all of it is on the screen")
	}
	keys(m, "up", "up")
	output(m, "ne", "epoch 100")
	wants(t, m, "held", "epoch 80") // stays where it is
	if strings.Contains(m.screenText(), "epoch 100") {
		t.Errorf("the end came in although it is held:\n%s", m.screenText())
	}
	keys(m, "=G")
	wants(t, m, "followed", "half a line", "epoch 100")
	keys(m, "=g")
	wants(t, m, "epoch 0")
	keys(m, "=/epoch 9[0-9]", "enter")
	wants(t, m, "10 lines", "epoch 95")
	keys(m, "esc")
	wants(t, m, "102 lines")
	send(m, logMsg{from: m.log.reader, ended: true})
	wants(t, m, "ended, 102 lines")
	keys(m, "=e")
	wants(t, m, "error output of 7")
	if got := strings.Join(a.what[len(a.what)-2:], ","); got != "close 7,error logs 7 " {
		t.Errorf("asked for %q", got)
	}
	keys(m, "esc")
	wants(t, m, "[2 jobs]", "SPREAD")
	if got := lastAsked(a); got != "close 7" {
		t.Errorf("the log was not closed: %q", got)
	}
}

// TestLogsOfAWaitingJob: say why there are none.
func TestLogsOfAWaitingJob(t *testing.T) {
	m, _ := started(t, queueView)
	keys(m, "down", "=l")
	wants(t, m, "output of 8 sweep: PENDING", "job 8 waits: 2 jobs before it; its output comes when it has started")
}

func TestALogThatBreaksOff(t *testing.T) {
	m, a := started(t, jobsView)
	keys(m, "=l")
	output(m, "one")
	send(m, logMsg{from: m.log.reader, err: errors.New("the log broke off; r reads it again")})
	wants(t, m, "broken off", "one", "the log broke off; r reads it again")
	keys(m, "=r")
	if got := lastAsked(a); got != "logs 7" {
		t.Errorf("asked for %q", got)
	}
}

// TestALogThatWasClosedIsNotShown: what still comes from it does not get into the next one.
func TestALogThatWasClosedIsNotShown(t *testing.T) {
	m, _ := started(t, jobsView)
	keys(m, "=l")
	old := m.log.reader
	keys(m, "=:logs 8", "enter")
	if _, cmd := m.Update(logMsg{from: old, data: []byte("of job 7\n")}); cmd != nil || strings.Contains(m.screenText(), "of job 7") {
		t.Errorf("the output of job 7 is shown as that of job 8:\n%s", m.screenText())
	}
}

// TestOutputIsBounded: memory does not grow with a log, and what is looked at stays.
func TestOutputIsBounded(t *testing.T) {
	m, _ := started(t, jobsView)
	keys(m, "=l")
	for i := range logLinesMost {
		output(m, fmt.Sprintf("line %d.", i))
	}
	keys(m, "=g", "pgdown")
	wants(t, m, "line 19.")
	output(m, "one more", "and one")
	wants(t, m, "line 19.", "20000 lines (2 earlier ones are in the file)")
	send(m, logMsg{from: m.log.reader, data: []byte(strings.Repeat("x", 40<<20))})
	if l := m.log; l.size > logBytesMost || len(l.partial) > logLineMost {
		t.Errorf("%d bytes of lines, %d of the last one", l.size, len(l.partial))
	}
}

// TestOutputIsHarmless: no escape sequence of a job reaches the terminal, and a progress
// bar is what a terminal would show of it.
func TestOutputIsHarmless(t *testing.T) {
	for raw, want := range map[string]string{
		"\x1b[31mred\x1b[0m":                "red",
		" 10%|█  |\r 50%|██ |\r100%|███|\r": "100%|███|",
		"a\tb":                        "a    b",
		"\x1b]0;title\x07text\x1b[2J": "text",
		"bad \xff byte":               "bad \ufffd byte",
		"dos\r":                       "dos",
		"\u202eright to left":         "\ufffdright to left",
	} {
		if got := cleanOutput([]byte(raw)); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
		if got := cleanOutput([]byte(raw)); printer.Clean(got) != got {
			t.Errorf("%q is not clean", got)
		}
	}
}
