package control

import (
	"context"

	"github.com/coxswain-sched/coxswain/sched"
)

// Holding is what an account with a quota holds, borrows and lends.
type Holding = sched.Holding

// HoldingAmount is a resource of a flavour of it.
type HoldingAmount = sched.HoldingAmount

// Quotas lists the accounts with quotas, in the order of their trees; none where the
// rules have none.
func (rd *reader) Quotas(context.Context) []Holding {
	rd.of.state.RLock()
	defer rd.of.state.RUnlock()
	return rd.of.core.Holdings()
}
