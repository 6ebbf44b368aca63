// Package reconcile turns what engines report into what control must hear, and
// finds where ledger and engine disagree.
//
// It decides nothing about jobs. An error of an engine is never taken for "gone".
package reconcile

import (
	"context"
	"log/slog"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/ledger"
)

// Finding is one disagreement between ledger and engine.
type Finding struct {
	Kind  FindingKind
	Ref   engine.Ref
	Alloc ledger.Allocation // of Missing
}

// FindingKind says what disagrees.
type FindingKind string

// The kinds of finding.
const (
	// Missing: the ledger holds it, the engine is certain to have nothing.
	Missing FindingKind = "missing"
	// Orphan: the engine has it, the ledger does not hold it.
	Orphan FindingKind = "orphan"
)

// Compare lists the disagreements, missing ones in ledger order first, then
// orphans in the engine's order. Reports must be a complete List of the engine
// that was begun after the ledger's allocations were made.
func Compare(live []ledger.Allocation, reports []engine.Report) []Finding {
	has := make(map[engine.Ref]bool, len(reports))
	for _, r := range reports {
		has[r.Ref] = true
	}
	var out []Finding
	held := make(map[engine.Ref]bool, len(live))
	for _, a := range live {
		ref := Ref(a)
		held[ref] = true
		if !has[ref] {
			out = append(out, Finding{Missing, ref, a})
		}
	}
	for _, r := range reports {
		if !held[r.Ref] {
			out = append(out, Finding{Kind: Orphan, Ref: r.Ref})
		}
	}
	return out
}

// Ref is the name under which an engine knows an allocation.
func Ref(a ledger.Allocation) engine.Ref {
	return engine.Ref{Allocation: uint64(a.ID), Attempt: a.Attempt}
}

// Follow calls deliver for every event of the engine until the context ends. A
// broken watch is taken up again after the last event that was delivered, after a
// pause of retry.
func Follow(ctx context.Context, e engine.Engine, retry time.Duration, log *slog.Logger, deliver func(engine.Event)) {
	cursor := ""
	for ctx.Err() == nil {
		err := e.Watch(ctx, cursor, func(ev engine.Event) error {
			deliver(ev)
			cursor = ev.Cursor
			return ctx.Err()
		})
		if ctx.Err() != nil {
			return
		}
		log.Warn("watch of the engine broke, taking it up again", "after", cursor, "error", err)
		t := time.NewTimer(retry)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}
