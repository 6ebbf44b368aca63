package control

import (
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
)

// Types of the packages below that callers of Control pass and get.
type (
	Drain     = state.Drain
	Event     = state.Event
	Histogram = state.Histogram
	Policy    = state.Policy
	Pool      = pools.Pool
	PoolCheck = pools.Check
	PoolSpec  = state.PoolSpec
	PoolView  = pools.View
	Token     = state.Token
	View      = state.View
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
