// Package inventory converts Slurm's nodes, GRES and jobs (driver/slurm/site) into those of the fleet:
// the nodes of a pool, their devices, and who holds how much of them.
//
// Its functions ask nobody and keep nothing. Whether a reservation holds now, the clock says.
package inventory

import (
	"cmp"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/nodefence"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// Node converts a node of Slurm's into one of a pool.
func Node(pool string, n *site.Node) fleet.Node {
	out := fleet.Node{
		Name: n.Name, Pool: pool, Address: n.Address, Features: n.Features, Parts: n.Parts, Sockets: n.Sockets,
		Capacity: resource.Vector{CPU: resource.CPUs(n.CPUs), Memory: resource.Amount(n.Memory)},
		Devices:  GPUs(n.GRES), Path: n.Path,
	}
	if p, ok := n.Pod(); ok && p.Node != "" {
		out.Hosts = []string{p.Node}
	}
	out.State = State(n)
	m := nodefence.Read(n)
	if m.Stands {
		out.Fence = m.Epoch
	}
	if out.State != fleet.Up && (n.Down || !nodefence.OnlyOurs(n, m)) {
		out.Why = strings.TrimSpace("Slurm: " + n.State + " " + n.Reason)
	}
	return out
}

// NameHosts says of nodes, as Node made them of what was found, on which machine they are where its name is another
// one than the node's (NodeHostname), in lower case as kubelets have it. It is not said where several nodes name one
// machine, as several slurmds on one do, of nodes in pods, and of those of clouds: their machines come and go.
func NameHosts(found []site.Node, all []fleet.Node) {
	named := map[string]int{}
	hostOf := func(n *site.Node) string { return strings.ToLower(cmp.Or(n.Host, n.Name)) }
	for i := range found {
		named[hostOf(&found[i])]++
	}
	for i := range found {
		n, host := &found[i], hostOf(&found[i])
		state := strings.ToLower(n.State)
		_, inPod := n.Pod()
		if inPod || named[host] > 1 || strings.EqualFold(host, n.Name) || host == "localhost" || net.ParseIP(host) != nil ||
			strings.Contains(state, "cloud") || strings.Contains(state, "dynamic") {
			continue
		}
		all[i].Hosts = []string{host}
	}
}

// State says whether new work may start on a node.
func State(n *site.Node) fleet.NodeState {
	switch {
	case n.Down:
		return fleet.Down
	case n.Drained:
		return fleet.Draining
	}
	return fleet.Up
}

// GPUs lists the GPUs of a node's GRES, the devices with an identity.
func GPUs(gres string) []fleet.Device {
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

// CountedGRES lists the GRES of a node that are counted, all but GPUs: by name, and by name and type.
func CountedGRES(gres string) (out []resource.Named) {
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

// Uses sums up the resources that jobs hold, by user and partition, the largest first. own reports
// whether a job with this comment is the driver's.
func Uses(held []site.Held, own func(comment string) bool) []fleet.Use {
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

// Nodes lists the nodes with the resources that our jobs and others hold. Slurm says of a node what
// is in use. Ours is the part of our jobs there, those on several nodes in equal parts, and others
// have the rest.
func Nodes(found []site.Node, held []site.Held, reservations []fleet.Reservation, own func(comment string) bool) []fleet.NodeStock {
	type part struct{ cpus, gpus int }
	ours := map[string]part{}
	for i := range held {
		h := &held[i]
		if n := len(h.Nodes); h.Running && n > 0 && own(h.Comment) {
			for k, name := range h.Nodes { // what does not divide goes to the first ones
				p := ours[name]
				ours[name] = part{p.cpus + (h.CPUs+n-1-k)/n, p.gpus + (h.GPUs+n-1-k)/n}
			}
		}
	}
	reserved := map[string]string{}
	now := time.Now()
	for _, r := range reservations {
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
		x := fleet.NodeStock{Name: n.Name, Level: State(n), State: n.State, Why: n.Reason, Partitions: n.Parts, Reservation: reserved[n.Name], CPUs: n.CPUs, GPUs: len(GPUs(n.GRES))}
		used, p := part{n.UsedCPUs, len(GPUs(n.Taken))}, ours[n.Name]
		x.CPUsOurs, x.GPUsOurs = min(p.cpus, used.cpus), min(p.gpus, used.gpus)
		x.CPUsOthers, x.GPUsOthers = used.cpus-x.CPUsOurs, used.gpus-x.GPUsOurs
		out = append(out, x)
	}
	return out
}
