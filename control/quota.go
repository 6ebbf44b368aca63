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
func (c *Control) Quotas(context.Context) []Holding {
	c.state.RLock()
	defer c.state.RUnlock()
	return c.core.Holdings()
}
