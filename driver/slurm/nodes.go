package slurm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/inventory"
	"github.com/coxswain-sched/coxswain/driver/slurm/nodefence"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// Delegates reports whether slurmctld chooses the nodes.
func (e *Engine) Delegates() bool { return !e.cfg.Placed }

// Nodes lists the nodes of the cluster.
func (e *Engine) Nodes(ctx context.Context) ([]fleet.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return e.listNodes(ctx)
}

func (e *Engine) listNodes(ctx context.Context) ([]fleet.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	asked := time.Now()
	found, err := e.cfg.Site.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]fleet.Node, len(found))
	for i := range found {
		all[i] = inventory.Node(e.cfg.Pool, &found[i])
		if e.cfg.Placed {
			continue // it could not be said which of these a job is to have
		}
		for _, g := range inventory.CountedGRES(found[i].GRES) {
			all[i].Capacity = all[i].Capacity.With(g.Name, all[i].Capacity.Get(g.Name).Add(g.Amount))
		}
	}
	inventory.NameHosts(found, all)
	e.markForeignUse(found, all)
	e.See(found)
	e.mu.Lock()
	e.seen.nodes, e.seen.found, e.seen.nameless, e.seen.asked = all, found, podsWithoutMachine(found), asked
	e.mu.Unlock()
	return slices.Clone(all), nil
}

// CheckNode is engine.NodeChecker's: the state and the reason that slurmctld has of a node, as last listed. They
// are what a HealthCheckProgram leaves there.
func (e *Engine) CheckNode(ctx context.Context, node string) ([]fleet.CheckResult, error) {
	var asked time.Time
	seen := func() *site.Node {
		e.mu.Lock()
		defer e.mu.Unlock()
		asked = e.seen.asked
		if i := slices.IndexFunc(e.seen.found, func(n site.Node) bool { return n.Name == node }); i >= 0 {
			return &e.seen.found[i]
		}
		return nil
	}
	n := seen()
	if n == nil {
		if _, err := e.listNodes(ctx); err != nil {
			return nil, err
		}
		if n = seen(); n == nil {
			return nil, fault.New(fault.NotFound, "Slurm has no node %s", node)
		}
	}
	r := fleet.CheckResult{Check: "node", Verdict: fleet.Passed, From: "slurm", Text: n.State, At: asked}
	if n.Reason != "" {
		r.Text += ": " + n.Reason
	}
	switch {
	case n.Down, n.Drained && !nodefence.OnlyOurs(n, nodefence.Read(n)):
		r.Verdict = fleet.Failed
	case !n.Available && !n.Drained:
		r.Verdict = fleet.Warned
	}
	return []fleet.CheckResult{r}, nil
}

// firstUnknownNode is the first node of claims that is none of the cluster's, or empty. A cluster
// that does not answer is not waited for where all are known; where one is not, Slurm says so
// later.
func (e *Engine) firstUnknownNode(ctx context.Context, claims []fleet.Claim) (string, error) {
	find := func() string {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, c := range claims {
			if !slices.ContainsFunc(e.seen.nodes, func(n fleet.Node) bool { return n.Name == c.Node }) {
				return c.Node
			}
		}
		return ""
	}
	name := find()
	if name == "" {
		return "", nil
	}
	switch _, err := e.listNodes(ctx); {
	case fault.KindOf(err) == fault.Unavailable && ctx.Err() == nil:
		return "", nil
	case err != nil:
		return "", err
	}
	return find(), nil
}

// clusterState is the cluster as it was last seen.
type clusterState struct {
	nodes    []fleet.Node
	nameless []string     // nodes in pods on machines that nobody names
	found    []site.Node  // the nodes as Slurm has them; never written to
	asked    time.Time    // when they were
	others   ForeignUse   // held by jobs that are not ours
	cluster  site.Cluster // as slurmctld describes itself
}

// notesOfNodes are notes of Info about nodes, as the last list of them had these.
func (e *Engine) notesOfNodes() (notes []string) {
	e.mu.Lock()
	found := e.seen.found
	e.mu.Unlock()
	for _, text := range []string{e.inPods(), nodefence.Overruled(found), nodefence.BegunTwice(found)} {
		if text != "" {
			notes = append(notes, text)
		}
	}
	return notes
}

// inPods says which nodes run in Kubernetes pods on machines that nobody names, as the last
// list of nodes had it; empty: none. Those whose machine is known are recognised by it.
func (e *Engine) inPods() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.seen.nameless) == 0 {
		return ""
	}
	return fmt.Sprintf("%s run in Kubernetes pods on machines that Slurm does not name: no pool of that Kubernetes cluster may have these machines; "+
		`scontrol update nodename=N comment='{"namespace":"NAMESPACE","podName":"POD","node":"MACHINE"}' names them`, hostlist.Compress(e.seen.nameless))
}

// podsWithoutMachine are the nodes in pods of which it is not known on which machine they are.
func podsWithoutMachine(found []site.Node) (out []string) {
	for i := range found {
		if p, ok := found[i].Pod(); ok && p.Node == "" {
			out = append(out, found[i].Name)
		}
	}
	return out
}
