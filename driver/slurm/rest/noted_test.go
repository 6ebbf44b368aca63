package rest_test

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// noted is a site that notes what it is asked to do.
type noted struct{ did []string }

func (n *noted) note(what string) error {
	n.did = append(n.did, what)
	return nil
}

func (n *noted) Cluster(context.Context) (site.Cluster, error) {
	return site.Cluster{}, n.note("cluster")
}

func (n *noted) Submit(context.Context, *site.Submission) (uint32, error) { return 0, n.note("submit") }

func (n *noted) Jobs(context.Context, []uint32) ([]site.Job, error) { return nil, n.note("jobs") }

func (n *noted) Of(_ context.Context, user string) ([]site.Job, error) {
	return nil, n.note("of " + user)
}

func (n *noted) Past(context.Context, []uint32) ([]site.Job, error) { return nil, n.note("past") }

func (n *noted) PastOf(context.Context, string, time.Time) ([]site.Job, error) {
	return nil, n.note("past of")
}

func (n *noted) End(context.Context, uint32) error { return n.note("end") }

func (n *noted) Kill(context.Context, uint32) error { return n.note("kill") }

func (n *noted) Signal(context.Context, uint32, int, site.Scope) error { return n.note("signal") }

func (n *noted) Suspend(context.Context, uint32, bool) error { return n.note("suspend") }

func (n *noted) Update(context.Context, uint32, site.Change) error { return n.note("update") }

func (n *noted) Nodes(context.Context) ([]site.Node, error) { return nil, n.note("nodes") }

func (n *noted) Close() error { return n.note("close") }

func (n *noted) Stock(context.Context) (*fleet.Inventory, error) { return nil, n.note("stock") }
func (n *noted) Everyone(context.Context) ([]site.Held, error)   { return nil, n.note("everyone") }
