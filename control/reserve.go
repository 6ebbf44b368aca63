package control

import (
	"context"

	"github.com/coxswain-sched/coxswain/sched"
)

// What a reservation in advance would meet.
type (
	// ReserveAsk is a reservation that somebody wants to make or to change.
	ReserveAsk = sched.ReserveAsk
	// Obstacle keeps a node from it.
	Obstacle = sched.Obstacle
	// Promised is the start that a waiting job was promised.
	Promised = sched.Promise
)

// Reservable says which nodes a reservation would get, what is in its way, and whose
// promised starts would become later, as of the last decision. nodes is nil where it
// asks for more than there are free ones.
func (rd *reader) Reservable(_ context.Context, ask *ReserveAsk) (nodes []string, way []Obstacle, late []Promised) {
	rd.of.state.RLock()
	defer rd.of.state.RUnlock()
	return rd.of.core.Reservable(ask)
}
