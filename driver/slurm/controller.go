package slurm

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// controller asks slurmctld and accounting, with the rights of the way in. Each call is bounded in
// time and ends with the engine.
type controller struct {
	site     site.Site
	patience time.Duration
	ctx      context.Context //nolint:containedctx // ends with the engine
}

// callContext bounds one call of the cluster.
func (k *controller) callContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(k.ctx, k.patience)
}

// submit hands over a job that asks a node.
func (k *controller) submit(s *site.Submission) (uint32, error) {
	ctx, cancel := k.callContext()
	defer cancel()
	return k.site.Submit(ctx, s)
}

// currentJob asks what slurmctld says of an attempt's job now. nil: it does not know the job any
// more, or knows another by the number, which it gives out again after a loss. What ends
// jobs names them by number alone, so it is asked right before.
func (k *controller) currentJob(ctx context.Context, a *attempt) (*site.Job, error) {
	all, err := k.site.Jobs(ctx, []uint32{a.id})
	if err != nil {
		return nil, err
	}
	return findJob(all, a), nil
}

// findSubmitted finds the job with an attempt's tag; nil: neither slurmctld nor accounting has one.
func (k *controller) findSubmitted(a *attempt) (*site.Job, error) {
	ctx, cancel := k.callContext()
	defer cancel()
	all, err := k.site.Of(ctx, a.user)
	if err != nil {
		return nil, err
	}
	if j := findTagged(all, a.tag); j != nil {
		return j, nil
	}
	all, err = k.site.PastOf(ctx, a.user, a.order.Time.Add(-time.Minute))
	if fault.KindOf(err) == fault.Unsupported {
		return nil, nil
	}
	return findTagged(all, a.tag), err
}

// findTagged is the job with a tag; of several the one that did not end because another began.
func findTagged(all []site.Job, tag string) *site.Job {
	var found *site.Job
	for i := range all {
		if hasTag(all[i].Comment, tag) && (found == nil || found.State.Final() && !all[i].State.Final()) {
			found = &all[i]
		}
	}
	return found
}

// hasTag reports whether a comment has a tag.
func hasTag(comment, tag string) bool {
	rest, ok := strings.CutPrefix(comment, tag)
	return ok && (rest == "" || rest[0] == ' ')
}

// spareJob is what slurmctld says of a spare, with its comment or another; nil: it does not
// know it.
func (k *controller) spareJob(ctx context.Context, p *requeuedJob, or string) (*site.Job, error) {
	all, err := k.site.Jobs(ctx, []uint32{p.ID})
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].ID == p.ID && (all[i].Comment == p.Comment || all[i].Comment == or) {
			return &all[i], nil
		}
	}
	return nil, nil
}

// answeringNodes are those of some nodes of which an answer can be had, for an attempt of whose job Slurm
// has a last word: of those that are down, or not in Slurm any more, that word counts.
func (k *controller) answeringNodes(ctx context.Context, nodes []string) (up []string, err error) {
	c, err := k.site.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	all, err := k.site.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Since(c.Booted) < skew // it has not heard of its nodes yet
	for i := range all {
		if n := &all[i]; (!n.Down || began) && slices.Contains(nodes, n.Name) {
			up = append(up, n.Name)
		}
	}
	return up, nil
}
