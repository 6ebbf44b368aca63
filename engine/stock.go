package engine

import "github.com/coxswain-sched/coxswain/model/fleet"

// Inventorier is an optional ability: to tell what a pool has beside the capacity of its
// nodes.
type Inventorier interface {
	// Inventory is what was found last; nobody is asked, and the caller may keep it. nil:
	// nothing is known yet.
	Inventory() *fleet.Inventory
}

// Explainer is an optional ability: to say in plain language what a word means that the
// scheduler which the engine drives has for why a job waits (Report.Message), and what would
// help. Both are empty of a word that it does not know.
type Explainer interface {
	Explain(word string) (what, help string)
}
