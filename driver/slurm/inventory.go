package slurm

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
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
	out.Use = sumUses(s.held, e.log.isOwnComment)
	out.Nodes = nodeStocks(found, s, e.log.isOwnComment)
	return &out
}

// isOwnComment reports whether a job's comment says that it is this driver's.
func (j *journal) isOwnComment(comment string) bool {
	return strings.HasPrefix(comment, "cox:"+j.cluster+":")
}

// sumUses sums up what jobs hold, by user and partition, the largest first.
func sumUses(held []site.Held, own func(comment string) bool) []fleet.Use {
	type key struct {
		user, partition string
		ours            bool
	}
	sums := map[key]*fleet.Use{}
	for i := range held {
		h := &held[i]
		k := key{h.User, h.Partition, own(h.Comment)}
		u := sums[k]
		if u == nil {
			u = &fleet.Use{User: k.user, Partition: k.partition, Ours: k.ours}
			sums[k] = u
		}
		if !h.Running {
			u.Waiting++
			continue
		}
		u.Running++
		u.Nodes += len(h.Nodes)
		u.CPUs += h.CPUs
		u.GPUs += h.GPUs
	}
	var out []fleet.Use
	for _, u := range sums {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b fleet.Use) int {
		return cmp.Or(b.GPUs-a.GPUs, b.CPUs-a.CPUs, b.Running-a.Running, cmp.Compare(a.User, b.User), cmp.Compare(a.Partition, b.Partition))
	})
	return out
}

// nodeStocks are the nodes with what ours and others hold of them. Slurm says of a node what
// is in use; ours is the part of our jobs there, those on several nodes in equal parts, and
// others have the rest.
func nodeStocks(found []site.Node, s inventoryState, own func(comment string) bool) []fleet.NodeStock {
	type part struct{ cpus, gpus int }
	ours := map[string]part{}
	for i := range s.held {
		h := &s.held[i]
		if n := len(h.Nodes); h.Running && n > 0 && own(h.Comment) {
			for k, name := range h.Nodes { // what does not divide goes to the first ones
				p := ours[name]
				ours[name] = part{p.cpus + (h.CPUs+n-1-k)/n, p.gpus + (h.GPUs+n-1-k)/n}
			}
		}
	}
	reserved := map[string]string{}
	now := time.Now()
	for _, r := range s.inv.Reservations {
		if now.Before(r.Start) || now.After(r.End) {
			continue
		}
		names, _ := hostlist.Expand(r.Nodes)
		for _, n := range names {
			reserved[n] = strings.TrimPrefix(reserved[n]+","+r.Name, ",")
		}
	}
	out := make([]fleet.NodeStock, 0, len(found))
	for i := range found {
		n := &found[i]
		x := fleet.NodeStock{Name: n.Name, Level: nodeState(n), State: n.State, Why: n.Reason, Partitions: n.Parts, Reservation: reserved[n.Name], CPUs: n.CPUs, GPUs: len(gpuDevices(n.GRES))}
		used, p := part{n.UsedCPUs, len(gpuDevices(n.Taken))}, ours[n.Name]
		x.CPUsOurs, x.GPUsOurs = min(p.cpus, used.cpus), min(p.gpus, used.gpus)
		x.CPUsOthers, x.GPUsOthers = used.cpus-x.CPUsOurs, used.gpus-x.GPUsOurs
		out = append(out, x)
	}
	return out
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
