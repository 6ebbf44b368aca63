package control

import (
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
)

// Types of the packages below that callers of Control pass and get.
type (
	Drain         = state.Drain
	Event         = state.Event
	Filter        = query.Filter
	Histogram     = state.Histogram
	Holding       = query.Holding
	HoldingAmount = query.HoldingAmount
	Moved         = query.Moved
	Moves         = query.Moves
	NodeView      = query.NodeView
	Obstacle      = query.Obstacle
	Policy        = state.Policy
	Pool          = pools.Pool
	PoolCheck     = pools.Check
	PoolSpec      = state.PoolSpec
	PoolView      = pools.View
	Priority      = query.Priority
	Promised      = query.Promised
	Proposal      = query.Proposal
	ReserveAsk    = query.ReserveAsk
	Standing      = query.Standing
	Stats         = query.Stats
	Token         = state.Token
	View          = state.View
	WhatIf        = query.WhatIf
	WhatIfDone    = query.WhatIfDone
	Why           = query.Why
)

// Kinds of event that callers tell apart.
const (
	EventAllocated = state.EventAllocated
	EventCancelled = state.EventCancelled
	EventDeadline  = state.EventDeadline
	EventDrained   = state.EventDrained
	EventEnded     = state.EventEnded
	EventHeld      = state.EventHeld
	EventPolicy    = state.EventPolicy
	EventReleased  = state.EventReleased
	EventRequeued  = state.EventRequeued
	EventRevoked   = state.EventRevoked
	EventStarted   = state.EventStarted
	EventSubmitted = state.EventSubmitted
	EventToken     = state.EventToken
	EventUncertain = state.EventUncertain
	EventUpdated   = state.EventUpdated
	EventUsage     = state.EventUsage
)

// RestNames are the things that Standing.Rest is of.
var RestNames = query.RestNames
