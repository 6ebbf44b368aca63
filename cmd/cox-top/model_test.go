package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// asked is a source that only notes what it was asked for.
type asked struct {
	what []string
	log  *askedLog
}

func (a *asked) fetchAll() tea.Msg { a.what = append(a.what, "look"); return nil }

func (a *asked) readUse() tea.Msg { a.what = append(a.what, "use"); return nil }

func (a *asked) note(what, name string) tea.Cmd {
	a.what = append(a.what, what+" "+name)
	return nil
}
func (a *asked) jobCard(name string) tea.Cmd   { return a.note("job", name) }
func (a *asked) whyCard(name string) tea.Cmd   { return a.note("why", name) }
func (a *asked) cancelJob(name string) tea.Cmd { return a.note("cancel", name) }
func (a *asked) openShell(name string) tea.Cmd { return a.note("shell", name) }

func (a *asked) openLog(target string, stderr bool) logReader {
	what := "logs "
	if stderr {
		what = "error logs "
	}
	a.note(what+target, "")
	a.log = &askedLog{asked: a, target: target}
	return a.log
}

// askedLog is a log that says nothing by itself.
type askedLog struct {
	asked  *asked
	target string
}

func (l *askedLog) next() tea.Msg { return nil }
func (l *askedLog) close()        { l.asked.note("close", l.target) }

// fleetOf is nodes of 8 devices each; jobs hold all devices of their nodes.
func seen() snapshot {
	s := snapshot{info: &api.ServerInfo{Name: "main", Host: "login1"}}
	for i := 1; i <= 12; i++ {
		n := api.Node{Name: fmt.Sprintf("v%d", i), State: "up", CPUs: 8, Memory: 1 << 34}
		for d := range 4 {
			dev := api.Device{Device: fleet.Device{Index: d, Kind: "gpu", Type: "h100", NUMA: -1}}
			if i <= 2 {
				dev.Jobs = []string{"7"}
			}
			n.Devices = append(n.Devices, dev)
		}
		if i <= 2 {
			n.Jobs, n.CPUsUsed = []string{"7"}, 4
		}
		s.nodes = append(s.nodes, n)
	}
	s.nodes[11].State, s.nodes[11].Why = "draining", "fan"
	s.pools = []api.Pool{
		{Name: "local", Engine: "local", State: api.PoolUp, Default: true, Nodes: 12, Devices: 48, DevicesUsed: 8, Jobs: 1, Gang: "strict"},
		{Name: "k8s", Engine: "kube", Version: "v1.31", State: api.PoolSilent, Nodes: 3, Why: "no answer for 2 min"},
	}
	s.jobs = []printer.QueueRow{
		{Name: "7", JobName: "train", User: "anna", State: "RUNNING", Started: now.Add(-time.Hour), Limit: 2 * time.Hour, Nodes: 2, NodeList: "v[1-2]", GPUs: 8},
		{Name: "8", JobName: "sweep", User: "ben", State: "PENDING", Submitted: now.Add(-2 * time.Hour), Priority: 5, Nodes: 1, GPUs: 1, ReasonText: "2 jobs before it"},
		{Name: "9_[1-4]", JobName: "grid", User: "anna", State: "PENDING", Submitted: now.Add(-time.Hour), Priority: 9, Nodes: 1, GPUs: 2},
	}
	return s
}

func started(t *testing.T, first view) (*model, *asked) {
	t.Helper()
	a := &asked{}
	m := newModel(a, first, false, func() time.Time { return now })
	m.Init()
	send(m, tea.WindowSizeMsg{Width: 120, Height: 24}, seenMsg{seen()})
	return m, a
}

func send(m *model, msgs ...tea.Msg) {
	for _, msg := range msgs {
		m.Update(msg)
	}
}

// keys types: names of keys, or text letter by letter after a "=".
func keys(m *model, names ...string) {
	for _, n := range names {
		if text, ok := strings.CutPrefix(n, "="); ok {
			for _, r := range text {
				send(m, tea.KeyPressMsg{Code: r, Text: string(r)})
			}
			continue
		}
		codes := map[string]rune{"ctrl+d": 'd', "ctrl+k": 'k', "up": tea.KeyUp, "down": tea.KeyDown, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "backspace": tea.KeyBackspace, "end": tea.KeyEnd, "pgdown": tea.KeyPgDown}
		var mod tea.KeyMod
		if strings.HasPrefix(n, "ctrl+") {
			mod = tea.ModCtrl
		}
		send(m, tea.KeyPressMsg{Code: codes[n], Mod: mod})
	}
}

func wants(t *testing.T, m *model, texts ...string) {
	t.Helper()
	screen := m.screenText()
	for _, w := range texts {
		if !strings.Contains(screen, w) {
			t.Errorf("%q is not on the screen:\n%s", w, screen)
		}
	}
}

func TestTheThreeViews(t *testing.T) {
	m, _ := started(t, nodesView)
	wants(t, m, "main on login1", "nodes 11 up 1 draining", "GPUs 8/48", "1 running   5 waiting", ">v1    up        ████      4/4  unknown   4/8  ████░░░░  0 B/16 GiB  7", "v12   draining", "fan")
	keys(m, "tab")
	wants(t, m, ">7    train  anna  1:00:00  2:00:00  ████░░░░     8  unknown      2  ██··········  v[1-2]")
	keys(m, "=3")
	wants(t, m, ">9_[1-4]  grid   anna  1:00:00         9", "8        sweep  ben   2:00:00         5      1     1         2 jobs before it")
}

func TestNodesStandInTheOrderOfTheirNumbers(t *testing.T) {
	m, _ := started(t, nodesView)
	s := m.screenText()
	if strings.Index(s, "v2 ") > strings.Index(s, "v10 ") {
		t.Error(s)
	}
}

func TestFilterAndSort(t *testing.T) {
	m, _ := started(t, queueView)
	keys(m, "=/BEN")
	if s := m.screenText(); !strings.Contains(s, "sweep") || strings.Contains(s, "grid") {
		t.Error(s)
	}
	keys(m, "esc", "=o")
	if s := m.screenText(); strings.Index(s, "sweep") > strings.Index(s, "grid") || !strings.Contains(s, "sorted by waited") {
		t.Error(s)
	}
	keys(m, "=O")
	if s := m.screenText(); strings.Index(s, "sweep") < strings.Index(s, "grid") {
		t.Error(s)
	}
	keys(m, "=/nobody", "enter")
	wants(t, m, "nothing matches /nobody")
}

func TestTheCursorStaysOnItsJob(t *testing.T) {
	m, a := started(t, queueView)
	keys(m, "down") // on 8
	s := seen()
	s.jobs = append(s.jobs, printer.QueueRow{Name: "10", State: "PENDING", Priority: 99, Submitted: now})
	send(m, seenMsg{s})
	keys(m, "=w")
	if got := a.what[len(a.what)-1]; got != "why 8" {
		t.Errorf("asked for %q", got)
	}
}

// TestARowOfAnArray: of its tasks the first is shown; all are cancelled.
func TestARowOfAnArray(t *testing.T) {
	m, a := started(t, queueView)
	keys(m, "=w", "enter")
	if got := strings.Join(a.what[len(a.what)-2:], ", "); got != "why 9_1, job 9_1" {
		t.Errorf("asked for %q", got)
	}
	for name, want := range map[string]string{"7": "7", "7_3": "7_3", "7_[3]": "7_3", "7_[0-500]": "7_0", "7_[4,9%2]": "7_4", "7_[": "7_["} {
		if got := firstJob(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestHeldJobsStandInNoLine: they come last, whatever their priority.
func TestHeldJobsStandInNoLine(t *testing.T) {
	m, _ := started(t, queueView)
	s := seen()
	s.jobs[2].Flags = []string{"HELD"}
	send(m, seenMsg{s})
	if screen := m.screenText(); strings.Index(screen, "sweep") > strings.Index(screen, "grid") {
		t.Error(screen)
	}
}

func TestCancelAsksFirst(t *testing.T) {
	m, a := started(t, queueView)
	keys(m, "=c")
	wants(t, m, "cancel 9_[1-4] grid of anna? y n")
	keys(m, "=n")
	if strings.Contains(strings.Join(a.what, " "), "cancel") {
		t.Fatal("cancelled although the answer was no")
	}
	keys(m, "=cy")
	if got := a.what[len(a.what)-1]; got != "cancel 9_[1-4]" {
		t.Errorf("asked for %q", got)
	}
	send(m, doneMsg{"cancelled 9\x1b[2J"})
	wants(t, m, "cancelled 9\ufffd[2J")
}

// TestTheConfirmedJobIsCancelled: not the one that has come under the cursor since.
func TestTheConfirmedJobIsCancelled(t *testing.T) {
	m, a := started(t, queueView)
	keys(m, "=c")
	s := seen()
	s.jobs = s.jobs[:2] // 9 is gone
	send(m, seenMsg{s})
	keys(m, "=y")
	if got := a.what[len(a.what)-1]; got != "cancel 9_[1-4]" {
		t.Errorf("asked for %q", got)
	}
}

func TestCards(t *testing.T) {
	m, a := started(t, nodesView)
	keys(m, "enter")
	wants(t, m, "── v1 ─", "GPUs      4 of 4 used, h100", "held by 7")
	keys(m, "esc", "=c")
	wants(t, m, "choose a job first")
	keys(m, "=2", "enter")
	if got := a.what[len(a.what)-1]; got != "job 7" {
		t.Errorf("asked for %q", got)
	}
	send(m, cardMsg{"7", strings.Repeat("line\n", 100) + "the end"})
	for range 200 {
		keys(m, "down")
	}
	wants(t, m, "the end")
	keys(m, "=q")
	wants(t, m, "SPREAD")
}

func TestNoAnswerIsSaid(t *testing.T) {
	m, _ := started(t, nodesView)
	send(m, lostMsg{errors.New("no server answers")})
	wants(t, m, "no answer, this is old: no server answers", "v1 ")
	send(m, seenMsg{seen()})
	if strings.Contains(m.screenText(), "no answer") {
		t.Error("an old error is still there")
	}
}

// TestOneLookAtATime: events during a look make one more look after it.
func TestOneLookAtATime(t *testing.T) {
	m, _ := started(t, nodesView)
	m.looking = false
	if _, cmd := m.Update(changedMsg{}); cmd == nil {
		t.Fatal("a change made no look")
	}
	for range 5 {
		if _, cmd := m.Update(changedMsg{}); cmd != nil {
			t.Fatal("a second look beside the first")
		}
	}
	if _, cmd := m.Update(seenMsg{seen()}); cmd == nil {
		t.Fatal("what changed during the look was forgotten")
	}
	if _, cmd := m.Update(seenMsg{seen()}); cmd != nil {
		t.Fatal("looks never end")
	}
}

// TestALookThatTookLongIsNotRepeatedAtOnce: and one wait is enough for all changes.
func TestALookThatTookLongIsNotRepeatedAtOnce(t *testing.T) {
	m, _ := started(t, nodesView)
	clock := now
	m.now = func() time.Time { return clock }
	m.Update(changedMsg{})
	clock = clock.Add(time.Second)
	m.Update(seenMsg{seen()})
	if _, cmd := m.Update(changedMsg{}); cmd == nil || m.looking {
		t.Fatal("no rest after a long look")
	}
	if _, cmd := m.Update(changedMsg{}); cmd != nil {
		t.Fatal("a second wait beside the first")
	}
	clock = clock.Add(5 * time.Second)
	if _, cmd := m.Update(restMsg{}); cmd == nil || !m.looking {
		t.Fatal("no look after the rest")
	}
}

// TestAnyKeysOnAnyScreen: no key and no size breaks the screen.
func TestAnyKeysOnAnyScreen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(&asked{}, view(rapid.IntRange(0, 3).Draw(t, "view")), rapid.Bool().Draw(t, "colour"), func() time.Time { return now })
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 10).Draw(t, "what") {
			case 0:
				send(m, tea.WindowSizeMsg{Width: rapid.IntRange(1, 200).Draw(t, "width"), Height: rapid.IntRange(1, 60).Draw(t, "height")})
			case 1:
				s := seen()
				s.jobs = s.jobs[:rapid.IntRange(0, len(s.jobs)).Draw(t, "jobs")]
				s.nodes = s.nodes[:rapid.IntRange(0, len(s.nodes)).Draw(t, "nodes")]
				send(m, seenMsg{s})
			case 2:
				send(m, cardMsg{"x", rapid.SampledFrom([]string{"", "a\nb", strings.Repeat("long ", 80)}).Draw(t, "card")})
			case 3:
				if m.log != nil {
					send(m, logMsg{from: m.log.reader, data: []byte(rapid.SampledFrom([]string{"one\ntwo\nthree", "日本語\t\x1b[31mred\x1b[0m\rover\n", strings.Repeat("wide 日本 ", 60) + "\n", "\xff\xfe\n\n\n", strings.Repeat("x\n", 100)}).Draw(t, "output")), ended: rapid.Bool().Draw(t, "ended")})
				}
			default:
				keys(m, rapid.SampledFrom([]string{"up", "down", "enter", "esc", "tab", "end", "pgdown", "backspace", "=/", "=s", "=S", "=c", "=y", "=w", "=1", "=2", "=3", "=a", "=?", "=g", "=l", "=e", "=f", "=:", "=d", "=jobs", "=logs 7", "ctrl+d", "=4", "=o", "=!("}).Draw(t, "key"))
			}
			if n := strings.Count(m.screenText(), "\n") + 1; n > max(m.height, 1) {
				t.Fatalf("%d lines on a screen of %d:\n%s", n, m.height, m.screenText())
			}
			for _, l := range strings.Split(m.screenText(), "\n") {
				if !m.colour && printer.Width(l) > m.width+1 {
					t.Fatalf("%d columns on a screen of %d: %q", printer.Width(l), m.width, l)
				}
			}
		}
	})
}

// BenchmarkScreen is a key and its screen with a long queue.
func BenchmarkScreen(b *testing.B) {
	m := newModel(&asked{}, queueView, true, func() time.Time { return now })
	s := seen()
	for i := range 10000 {
		s.jobs = append(s.jobs, printer.QueueRow{Name: fmt.Sprint(100 + i), JobName: "sweep", User: "ben", State: "PENDING", Priority: int64(i % 100), Submitted: now, ReasonText: "2 jobs before it"})
	}
	send(m, seenMsg{s})
	for b.Loop() {
		keys(m, "down")
		_ = m.screenText()
	}
}
