package pools

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/coxswain-sched/coxswain/control/dispatch"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Pool is a set of nodes and the engine that runs the jobs that are placed on them.
//
// Pools are independent: each has calls, a watch and comparisons of its own, so that an engine
// that does not answer delays none of the others. The nodes of all of them are one fleet, in
// which a node is known by its pool and its name.
type Pool struct {
	fleet.Pool
	Engine engine.Engine
	// Elastic says that the engine can change a gang that runs (engine.Abilities).
	Elastic bool
	// Delegated says that the engine's own scheduler chooses the nodes (engine.Delegator).
	// It is found out; nobody has to set it.
	Delegated bool
}

// Member is a pool of a Set: a Pool with the calls to its engine and what the engine has said.
type Member struct {
	Pool
	Calls *dispatch.Dispatcher

	Status           EngineStatus
	Asking           atomic.Bool // the engine is being asked for all that it has
	AskAgain         atomic.Bool // something there has changed since it was asked
	HeartbeatPending atomic.Bool // … for a heartbeat
	Known            bool        // it has said which nodes it has; guarded by the state
	Leaving          bool        // it is being taken away; for the loop alone
	Own              bool        // the engine was opened by the control plane, which closes it
	Real             RealNodes   // its nodes, where it is one node to the core; guarded by the state

	Unwatch  context.CancelFunc // ends the watch
	Watching sync.WaitGroup
}
