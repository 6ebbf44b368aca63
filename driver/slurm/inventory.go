package slurm

import (
	"context"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/inventory"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// inventoryState is what the cluster has beside its nodes, as it was last told.
type inventoryState struct {
	inv  *fleet.Inventory // nil: never. It is not written to any more
	held []site.Held
	good time.Time // until when it counts as certain
}

// stockThrift is how much longer than an answer took lies between two questions: the
// cluster spends at most one part in so many on them.
const stockThrift = 200

// runInventory asks for the stock now and then.
func (e *Engine) runInventory() {
	for {
		began := time.Now()
		ctx, cancel := e.controller.callContext()
		err := e.takeStock(ctx)
		cancel()
		pause := max(e.cfg.Stock, stockThrift*time.Since(began))
		if err != nil && e.ctx.Err() == nil {
			e.cfg.Log.Warn("slurm: what the cluster has", "error", err)
			pause = max(e.cfg.Stock/10, stockThrift*time.Since(began))
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-e.ctx.Done():
			t.Stop()
			return
		}
	}
}

// takeStock asks for the stock, one caller at a time. What fails leaves what was known.
func (e *Engine) takeStock(ctx context.Context) error {
	select {
	case e.stocking <- struct{}{}:
		defer func() { <-e.stocking }()
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "what the cluster has is being asked for: %w", context.Cause(ctx))
	}
	began := time.Now()
	inv, err := e.cfg.Site.Stock(ctx)
	if err != nil {
		return err
	}
	held, err := e.cfg.Site.Everyone(ctx)
	if err != nil {
		inv.Unknown = append(inv.Unknown, "jobs of others: "+err.Error())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stock = inventoryState{inv, held, began.Add(3 * max(e.cfg.Stock, stockThrift*time.Since(began)))}
	return nil
}

// Inventory is engine.Inventorier's. Nodes are those of the last list of nodes, what jobs
// hold of them is as old as the rest.
func (e *Engine) Inventory() *fleet.Inventory {
	e.mu.Lock()
	s, found := e.stock, e.seen.found
	e.mu.Unlock()
	if s.inv == nil {
		return nil
	}
	out := *s.inv
	out.Use = inventory.Uses(s.held, e.log.isOwnComment)
	out.Nodes = inventory.Nodes(found, s.held, s.inv.Reservations, e.log.isOwnComment)
	return &out
}

// isOwnComment reports whether a job's comment says that it is this driver's.
func (j *journal) isOwnComment(comment string) bool {
	return strings.HasPrefix(comment, "cox:"+j.cluster+":")
}

// freshInventory is the inventory if it is not too old to refuse something by it.
func (e *Engine) freshInventory() *fleet.Inventory {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stock.inv == nil || time.Now().After(e.stock.good) {
		return nil
	}
	return e.stock.inv
}
