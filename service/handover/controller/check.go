package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/service/handover/decide"
)

// checkNode runs the checks of a node.
func (c *Controller) checkNode(ctx context.Context, k fleet.NodeKey) ([]fleet.CheckResult, error) {
	if c.cfg.Check == nil {
		return nil, fault.New(fault.Unsupported, "this server has no checks")
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return c.cfg.Check(ctx, k)
}

// noteChecked notes what the checks of a node saw. Where there are none, that is what is noted.
func noteChecked(n *decide.Node, pool string, a *answer, asked time.Time) {
	opened := n.Mark.At
	old := slices.ContainsFunc(a.results, func(r fleet.CheckResult) bool { return !r.At.IsZero() && r.At.Before(opened) })
	switch {
	case fault.KindOf(a.err) == fault.Unsupported:
		n.Checked = &decide.Checked{At: asked, Text: "not checked: " + a.err.Error()}
	case a.err != nil:
		n.Trouble = refusalText(a.err)
	case old:
		n.Trouble = fmt.Sprintf("what pool %s says of it was read before the node was opened", pool)
	default:
		n.Checked = &decide.Checked{At: asked, Text: resultsText(pool, a.results), Bad: badText(a.results)}
	}
}

// badText says which checks say that no work should start on a node as a whole; empty: none does.
func badText(results []fleet.CheckResult) string {
	var bad []string
	for i := range results {
		if r := &results[i]; r.Verdict == fleet.Failed && r.Device == nil {
			bad = append(bad, resultText(r))
		}
	}
	return strings.Join(bad, "; ")
}

// resultsText tells what checks saw: how many passed, each that did not, and what was only read of the pool's own
// system.
func resultsText(pool string, results []fleet.CheckResult) string {
	passed, ran := 0, 0
	var others, read []string
	for i := range results {
		r := &results[i]
		switch {
		case r.From != "":
			read = append(read, resultText(r))
			continue
		case r.Verdict == fleet.Passed:
			passed++
		default:
			others = append(others, resultText(r))
		}
		ran++
	}
	var parts []string
	switch {
	case ran > 0:
		parts = append(parts, fmt.Sprintf("%d of %d checks passed", passed, ran))
	case len(read) > 0:
		parts = append(parts, fmt.Sprintf("no check of Coxswain can run in pool %s; its own system says", pool))
	default:
		return fmt.Sprintf("not checked: no check is configured for pool %s", pool)
	}
	if ran > 0 {
		return strings.Join(append(parts, slices.Concat(others, read)...), "; ")
	}
	return parts[0] + " " + strings.Join(read, "; ")
}

// resultText is a result as people read it: "check disk warns: 96 % full".
func resultText(r *fleet.CheckResult) string {
	verb := map[fleet.Verdict]string{fleet.Passed: "passed", fleet.Warned: "warns", fleet.Failed: "failed", fleet.Unsure: "could not look"}[r.Verdict]
	text := "check " + r.Check + " " + verb
	if of := fleet.Subject(r.Device); of != "" {
		text = of + ": " + text
	}
	if r.Text != "" {
		text += ": " + r.Text
	}
	return text
}
