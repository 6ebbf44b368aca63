package engine

import (
	"context"

	"github.com/coxswain-sched/coxswain/model/fleet"
)

// NodeChecker is an optional ability: to say whether a node is fit for work. It starts nothing that a job
// waits for, and takes as long as ctx lets it.
type NodeChecker interface {
	// CheckNode says what each check of a node saw: those that the engine runs itself, and those that the
	// system that it drives has run (CheckResult.From). A check that the node does not pass is a result. An
	// error says that nobody looked, which is no evidence against the node; fault.NotFound: there is no
	// such node.
	CheckNode(ctx context.Context, node string) ([]fleet.CheckResult, error)
}
