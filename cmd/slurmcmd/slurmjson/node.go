package slurmjson

import (
	"strings"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/fleet"
)

// Group is nodes of one partition that sinfo shows as one.
type Group struct {
	Partition *fleet.Partition
	Nodes     []*fleet.Node
}

// Info writes sinfo's document.
func Info(c *face.Command, form string, list []Group) error {
	if err := CheckForm(form); err != nil {
		return err
	}
	doc := begin("sinfo")
	for i := range list {
		doc.group(&list[i])
		if err := doc.flush(c.Out, false); err != nil {
			return err
		}
	}
	return doc.end(c)
}

// StateWords are a node's state as the data parser lists it.
func StateWords(n *fleet.Node) []string {
	_, long, _ := n.Words()
	switch long {
	case "drained":
		return []string{"IDLE", "DRAIN"}
	case "draining":
		return []string{"MIXED", "DRAIN"}
	case "unknown*":
		return []string{"UNKNOWN", "NOT_RESPONDING"}
	}
	return []string{strings.ToUpper(long)}
}

func (w *w) group(g *Group) {
	var names []string
	var total, alloc, idle, other, nAlloc, nIdle, nOther, memAlloc int64
	var first fleet.Node
	w.open("", '{')
	w.int("port", 0)
	for i, n := range g.Nodes {
		if i == 0 {
			first = *n
		}
		names = append(names, n.Name)
		total += n.CPUs
		alloc += n.CPUsUsed
		memAlloc += n.MemoryUsed >> 20
		switch rest := max(n.CPUs-n.CPUsUsed, 0); {
		case n.Usable():
			idle += rest
		default:
			other += rest
		}
		switch {
		case n.Busy():
			nAlloc++
		case n.Usable():
			nIdle++
		default:
			nOther++
		}
	}
	w.open("node", '{')
	if len(g.Nodes) > 0 {
		w.list("state", StateWords(&first)...)
	} else {
		w.list("state")
	}
	w.close('}')
	w.open("nodes", '{')
	w.int("allocated", nAlloc)
	w.int("idle", nIdle)
	w.int("other", nOther)
	w.int("total", int64(len(g.Nodes)))
	w.list("hostnames", names...)
	w.list("addresses", addresses(g.Nodes)...)
	w.list("nodes", names...)
	w.close('}')
	w.open("cpus", '{')
	w.int("allocated", alloc)
	w.int("idle", idle)
	w.int("other", other)
	w.int("total", total)
	w.least("minimum", "maximum", g, func(n *fleet.Node) int64 { return n.CPUs })
	w.set("per_node_max", 0)
	w.close('}')
	w.bounds("sockets", g, func(n *fleet.Node) int64 { return n.Sockets })
	w.bounds("cores", g, (*fleet.Node).Cores)
	w.bounds("threads", g, func(*fleet.Node) int64 { return 1 })
	w.bounds("disk", g, func(*fleet.Node) int64 { return 0 })
	w.open("memory", '{')
	w.least("minimum", "maximum", g, func(n *fleet.Node) int64 { return n.Memory >> 20 })
	w.open("free", '{')
	low, high := span(g, func(n *fleet.Node) int64 { return max(n.Memory-n.MemoryUsed, 0) >> 20 })
	w.set("minimum", low)
	w.set("maximum", high)
	w.close('}')
	w.int("allocated", memAlloc)
	w.close('}')
	w.bounds("weight", g, func(*fleet.Node) int64 { return 1 })
	w.open("features", '{')
	w.str("total", strings.Join(first.Features, ","))
	w.str("active", strings.Join(first.Features, ","))
	w.close('}')
	w.open("gres", '{')
	w.str("total", first.GRES)
	w.str("used", first.GRESUsed)
	w.close('}')
	w.open("reason", '{')
	w.str("description", first.Why)
	w.str("user", first.By)
	w.set("time", max(first.Since.Unix(), 0))
	w.close('}')
	w.partition(g.Partition)
	w.close('}')
}

func addresses(nodes []*fleet.Node) (out []string) {
	for _, n := range nodes {
		out = append(out, n.Address)
	}
	return out
}

func span(g *Group, f func(n *fleet.Node) int64) (low, high int64) {
	for i, n := range g.Nodes {
		v := f(n)
		if i == 0 {
			low, high = v, v
		}
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

func (w *w) least(lowName, highName string, g *Group, f func(n *fleet.Node) int64) {
	low, high := span(g, f)
	w.int(lowName, low)
	w.int(highName, high)
}

func (w *w) bounds(name string, g *Group, f func(n *fleet.Node) int64) {
	w.open(name, '{')
	w.least("minimum", "maximum", g, f)
	w.close('}')
}

// partition writes what a partition is.
func (w *w) partition(p *fleet.Partition) {
	w.open("partition", '{')
	w.open("nodes", '{')
	w.str("configured", strings.Join(p.Nodes, ","))
	w.int("total", int64(len(p.Nodes)))
	w.close('}')
	w.str("name", p.Name)
	w.open("partition", '{')
	w.list("state", strings.ToUpper(p.State))
	w.close('}')
	w.open("maximums", '{')
	w.number("time", p.TimeLimit > 0, p.TimeLimit == 0, p.TimeLimit/60)
	w.close('}')
	w.open("defaults", '{')
	w.number("time", p.DefaultTime > 0, false, p.DefaultTime/60)
	w.close('}')
	w.close('}')
}

// Nodes writes the document of scontrol show nodes.
func Nodes(c *face.Command, form string, list []*fleet.Node, parts []fleet.Partition) error {
	if err := CheckForm(form); err != nil {
		return err
	}
	doc := begin("nodes")
	for _, n := range list {
		doc.node(n, parts)
		if err := doc.flush(c.Out, false); err != nil {
			return err
		}
	}
	return doc.end(c)
}

func (w *w) node(n *fleet.Node, parts []fleet.Partition) {
	w.open("", '{')
	w.str("name", n.Name)
	w.str("address", n.Address)
	w.str("hostname", n.Name)
	w.list("state", StateWords(n)...)
	w.int("boards", 1)
	w.int("cores", n.Cores())
	w.int("sockets", n.Sockets)
	w.int("threads", 1)
	w.int("cpus", n.CPUs)
	w.int("effective_cpus", n.CPUs)
	w.int("alloc_cpus", n.CPUsUsed)
	w.int("alloc_idle_cpus", max(n.CPUs-n.CPUsUsed, 0))
	w.int("real_memory", n.Memory>>20)
	w.int("alloc_memory", n.MemoryUsed>>20)
	w.set("free_mem", max(n.Memory-n.MemoryUsed, 0)>>20)
	w.list("features", n.Features...)
	w.list("active_features", n.Features...)
	w.str("gres", n.GRES)
	w.str("gres_used", n.GRESUsed)
	var in []string
	for i := range parts {
		for _, name := range parts[i].Nodes {
			if name == n.Name {
				in = append(in, parts[i].Name)
				break
			}
		}
	}
	w.list("partitions", in...)
	w.str("reason", n.Why)
	w.str("reason_set_by_user", n.By)
	w.set("reason_changed_at", max(n.Since.Unix(), 0))
	w.int("weight", 1)
	w.close('}')
}
