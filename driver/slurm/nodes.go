package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
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
	found, err := e.cfg.Site.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]fleet.Node, len(found))
	for i := range found {
		all[i] = fleetNode(e.cfg.Pool, &found[i])
		if e.cfg.Placed {
			continue // it could not be said which of these a job is to have
		}
		for _, g := range countedGRES(found[i].GRES) {
			all[i].Capacity = all[i].Capacity.With(g.Name, all[i].Capacity.Get(g.Name).Add(g.Amount))
		}
	}
	e.markForeignUse(found, all)
	e.mu.Lock()
	e.seen.nodes, e.seen.found, e.seen.nameless = all, found, podsWithoutMachine(found)
	e.mu.Unlock()
	return slices.Clone(all), nil
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
	others   ForeignUse   // held by jobs that are not ours
	cluster  site.Cluster // as slurmctld describes itself
}

// fleetNode is a node of Slurm's as the project knows nodes.
func fleetNode(pool string, n *site.Node) fleet.Node {
	out := fleet.Node{
		Name: n.Name, Pool: pool, Address: n.Address, Features: n.Features, Parts: n.Parts, Sockets: n.Sockets,
		Capacity: resource.Vector{CPU: resource.CPUs(n.CPUs), Memory: resource.Amount(n.Memory)},
		Devices:  gpuDevices(n.GRES), Path: n.Path,
	}
	if p, ok := n.Pod(); ok && p.Node != "" {
		out.Hosts = []string{p.Node}
	}
	out.State = nodeState(n)
	if out.State != fleet.Up {
		out.Why = strings.TrimSpace("Slurm: " + n.State + " " + n.Reason)
	}
	return out
}

// nodeState is whether new work may start on a node.
func nodeState(n *site.Node) fleet.NodeState {
	switch {
	case n.Down:
		return fleet.Down
	case n.Drained:
		return fleet.Draining
	}
	return fleet.Up
}

// gpuDevices are those of a node's GRES that have an identity: GPUs.
func gpuDevices(gres string) []fleet.Device {
	var out []fleet.Device
	for text := range strings.SplitSeq(stripParentheses(gres), ",") {
		parsed, err := slurmfmt.ParseGRES(text)
		if err != nil {
			continue
		}
		for _, g := range parsed {
			if g.Name != "gpu" {
				continue
			}
			for range g.Count {
				out = append(out, fleet.Device{Index: len(out), Minor: -1, Kind: "gpu", Type: g.Type, NUMA: -1})
			}
		}
	}
	return out
}

// countedGRES are a node's GRES that are counted: those that are no GPUs, by name, and by name
// and type.
func countedGRES(gres string) (out []resource.Named) {
	for text := range strings.SplitSeq(stripParentheses(gres), ",") {
		parsed, err := slurmfmt.ParseGRES(text)
		if err != nil {
			continue
		}
		for _, g := range parsed {
			if g.Name == "gpu" || g.Name == "" || g.Count <= 0 {
				continue
			}
			out = append(out, resource.Named{Name: "gres/" + g.Name, Amount: resource.Amount(g.Count)})
			if g.Type != "" {
				out = append(out, resource.Named{Name: "gres/" + g.Name + ":" + g.Type, Amount: resource.Amount(g.Count)})
			}
		}
	}
	return out
}

// stripParentheses takes what stands in parentheses out of a GRES: "gpu:h100:8(S:0-1)".
func stripParentheses(gres string) string {
	var b strings.Builder
	depth := 0
	for _, c := range gres {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0:
			b.WriteRune(c)
		}
	}
	return b.String()
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
