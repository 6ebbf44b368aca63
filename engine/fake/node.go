package fake

import (
	"slices"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Silence lets no word come from a node: the attempts on it become uncertain and go
// on unseen, and Empty knows nothing of it. What is asked of them waits for Return.
func (w *World) Silence(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, err := w.marksOf(node); err == nil {
		m.silent = true
	}
	for _, a := range w.sortedAttempts() {
		if !a.runsOn(node) || slices.Contains(a.away, node) {
			continue
		}
		if len(a.away) == 0 && !a.quiet && a.report.Phase != engine.Ended && w.feed != nil {
			r := a.toldReport()
			r.Uncertain, r.Message = true, "no word from "+node
			w.feed.Publish(r)
		}
		a.away = append(a.away, node)
	}
}

// Return takes Silence back: attempts are reported as they are by now, and what was
// asked of them meanwhile reaches them.
func (w *World) Return(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, err := w.marksOf(node); err == nil {
		m.silent = false
	}
	for _, a := range w.sortedAttempts() {
		if !slices.Contains(a.away, node) {
			continue
		}
		a.away = slices.DeleteFunc(a.away, func(n string) bool { return n == node })
		if len(a.away) > 0 {
			continue
		}
		w.publishReport(a)
		asked := a.asked
		a.asked = nil
		for _, do := range asked {
			do()
		}
	}
}

// Lose lets a node die with all that was on it: those attempts end, proved, and with
// them the rest of their gangs.
func (w *World) Lose(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.cfg.Now()
	for _, a := range w.sortedAttempts() {
		if !a.runsOn(node) || a.report.Phase == engine.Ended {
			continue
		}
		a.away = slices.DeleteFunc(a.away, func(n string) bool { return n == node })
		a.quiet = false
		a.report.Cause, a.report.Message = engine.NodeLost, "node "+node+" was lost"
		a.markLost(node)
		w.endAttempt(a, now, job.ExitCode{Signal: sigkill})
	}
}

// Wipe ends everything and forgets that it was there, as an engine does whose
// machines start anew without their disks. No driver may be open.
func (w *World) Wipe() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.cfg.Now()
	for _, a := range w.sortedAttempts() {
		if a.report.Phase != engine.Ended {
			a.report.Cause = engine.NodeLost
			w.endAttempt(a, now, job.ExitCode{Signal: sigkill})
		}
	}
	clear(w.attempts)
}

func (a *attempt) runsOn(node string) bool { return slices.Contains(a.nodes, node) }

// toldReport is the report as it is told: a copy.
func (a *attempt) toldReport() engine.Report {
	r := a.report
	r.Nodes, r.Tasks = slices.Clone(r.Nodes), slices.Clone(r.Tasks)
	return r
}
