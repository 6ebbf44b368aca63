package engine

import (
	"context"

	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
)

// Stocktaker is an optional ability: to tell what a pool has beside the capacity of its
// nodes.
type Stocktaker interface {
	// Inventory is what was found last; nobody is asked, and the caller may keep it. nil:
	// nothing is known yet.
	Inventory() *fleet.Inventory
}

// Doorkeeper is an optional ability: to refuse a job before it is taken, because what the
// engine drives has a rule by which it would never run it.
type Doorkeeper interface {
	// Admit returns fault.Invalid, with the rule and what would mend it, of a job that
	// certainly never runs in the pool as it is now. What is not certain is nil, as is what
	// cannot be found out in a moment.
	Admit(ctx context.Context, spec *job.Spec) error
}

// Explainer is an optional ability: to say in plain language what a word means that the
// scheduler which the engine drives has for why a job waits (Report.Message), and what would
// help. Both are empty of a word that it does not know.
type Explainer interface {
	Explain(word string) (what, help string)
}
