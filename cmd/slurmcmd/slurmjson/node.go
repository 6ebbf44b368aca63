package slurmjson

import (
	"slices"
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
func Info(c *slurmcmd.Command, form string, list []Group) error {
	if err := CheckForm(form); err != nil {
		return err
	}
	doc := beginDocument("sinfo")
	for i := range list {
		doc.nodeGroup(&list[i])
		if err := doc.flushLarge(c.Out, false); err != nil {
			return err
		}
	}
	return doc.endDocument(c)
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

func (w *w) nodeGroup(g *Group) {
	var names []string
	var total, alloc, idle, other, nAlloc, nIdle, nOther, memAlloc int64
	var first fleet.Node
	w.openValue("", '{')
	w.intField("port", 0)
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
	w.openValue("node", '{')
	if len(g.Nodes) > 0 {
		w.stringList("state", StateWords(&first)...)
	} else {
		w.stringList("state")
	}
	w.close('}')
	w.openValue("nodes", '{')
	w.intField("allocated", nAlloc)
	w.intField("idle", nIdle)
	w.intField("other", nOther)
	w.intField("total", int64(len(g.Nodes)))
	w.stringList("hostnames", names...)
	w.stringList("addresses", nodeAddresses(g.Nodes)...)
	w.stringList("nodes", names...)
	w.close('}')
	w.openValue("cpus", '{')
	w.intField("allocated", alloc)
	w.intField("idle", idle)
	w.intField("other", other)
	w.intField("total", total)
	w.minMaxFields("minimum", "maximum", g, func(n *fleet.Node) int64 { return n.CPUs })
	w.setNumber("per_node_max", 0)
	w.close('}')
	w.minMaxObject("sockets", g, func(n *fleet.Node) int64 { return n.Sockets })
	w.minMaxObject("cores", g, (*fleet.Node).Cores)
	w.minMaxObject("threads", g, func(*fleet.Node) int64 { return 1 })
	w.minMaxObject("disk", g, func(n *fleet.Node) int64 { return n.Disk >> 20 })
	w.openValue("memory", '{')
	w.minMaxFields("minimum", "maximum", g, func(n *fleet.Node) int64 { return n.Memory >> 20 })
	w.openValue("free", '{')
	low, high := minMax(g, func(n *fleet.Node) int64 { return max(n.Memory-n.MemoryUsed, 0) >> 20 })
	w.setNumber("minimum", low)
	w.setNumber("maximum", high)
	w.close('}')
	w.intField("allocated", memAlloc)
	w.close('}')
	w.minMaxObject("weight", g, func(*fleet.Node) int64 { return 1 })
	w.openValue("features", '{')
	w.stringField("total", strings.Join(first.Features, ","))
	w.stringField("active", strings.Join(first.Features, ","))
	w.close('}')
	w.openValue("gres", '{')
	w.stringField("total", first.GRES)
	w.stringField("used", first.GRESUsed)
	w.close('}')
	w.openValue("reason", '{')
	w.stringField("description", first.Why)
	w.stringField("user", first.By)
	w.setNumber("time", max(first.Since.Unix(), 0))
	w.close('}')
	w.partitionFields(g.Partition)
	w.close('}')
}

func nodeAddresses(nodes []*fleet.Node) (out []string) {
	for _, n := range nodes {
		out = append(out, n.Address)
	}
	return out
}

func minMax(g *Group, f func(n *fleet.Node) int64) (low, high int64) {
	for i, n := range g.Nodes {
		v := f(n)
		if i == 0 {
			low, high = v, v
		}
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

func (w *w) minMaxFields(lowName, highName string, g *Group, f func(n *fleet.Node) int64) {
	low, high := minMax(g, f)
	w.intField(lowName, low)
	w.intField(highName, high)
}

func (w *w) minMaxObject(name string, g *Group, f func(n *fleet.Node) int64) {
	w.openValue(name, '{')
	w.minMaxFields("minimum", "maximum", g, f)
	w.close('}')
}

// partitionFields writes what a partition is.
func (w *w) partitionFields(p *fleet.Partition) {
	w.openValue("partition", '{')
	w.openValue("nodes", '{')
	w.stringField("configured", strings.Join(p.Nodes, ","))
	w.intField("total", int64(len(p.Nodes)))
	w.close('}')
	w.stringField("name", p.Name)
	w.openValue("partition", '{')
	w.stringList("state", strings.ToUpper(p.State))
	w.close('}')
	w.openValue("maximums", '{')
	w.numberField("time", p.TimeLimit > 0, p.TimeLimit == 0, p.TimeLimit/60)
	w.close('}')
	w.openValue("defaults", '{')
	w.numberField("time", p.DefaultTime > 0, false, p.DefaultTime/60)
	w.close('}')
	w.close('}')
}

// Nodes writes the document of scontrol show nodes.
func Nodes(c *slurmcmd.Command, form string, list []*fleet.Node, parts []fleet.Partition) error {
	if err := CheckForm(form); err != nil {
		return err
	}
	doc := beginDocument("nodes")
	for _, n := range list {
		doc.sinfoNode(n, parts)
		if err := doc.flushLarge(c.Out, false); err != nil {
			return err
		}
	}
	return doc.endDocument(c)
}

// sinfoNode writes one element of nodes[], in Slurm's order.
func (w *w) sinfoNode(n *fleet.Node, parts []fleet.Partition) {
	w.openValue("", '{')
	w.stringField("architecture", n.Arch)
	w.emptyStrings("burstbuffer_network_address")
	w.intField("boards", 1)
	w.numberField("boot_time", !n.Booted.IsZero(), false, max(n.Booted.Unix(), 0))
	w.emptyStrings("cluster_name")
	w.intField("cores", n.Cores())
	w.rawField("specialized_cores", "0")
	w.rawField("cpu_binding", "0")
	w.intField("cpu_load", int64(n.Load*100+0.5))
	w.setNumber("free_mem", max(n.Memory-n.MemoryUsed, 0)>>20)
	w.intField("cpus", n.CPUs)
	w.intField("effective_cpus", n.CPUs)
	w.emptyStrings("specialized_cpus", "extra")
	w.stringList("features", n.Features...)
	w.stringList("active_features", n.Features...)
	w.emptyStrings("gpu_spec")
	w.stringField("gres", n.GRES)
	w.stringField("gres_drained", "N/A")
	w.stringField("gres_used", n.GRESUsed)
	w.emptyStrings("instance_id", "instance_type")
	w.unsetNumbers("last_busy")
	w.emptyStrings("mcs_label")
	w.rawField("specialized_memory", "0")
	w.stringField("name", n.Name)
	w.stringList("next_state_after_reboot", "INVALID")
	w.stringField("address", n.Address)
	w.stringField("hostname", n.Name)
	w.stringList("state", StateWords(n)...)
	w.stringField("operating_system", n.OS)
	w.emptyStrings("owner")
	w.stringList("partitions", partitionsOf(n.Name, parts)...)
	w.rawField("port", "0")
	w.intField("real_memory", n.Memory>>20)
	w.emptyStrings("comment")
	w.stringField("reason", n.Why)
	w.setNumber("reason_changed_at", max(n.Since.Unix(), 0))
	w.stringField("reason_set_by_user", n.By)
	w.unsetNumbers("resume_after")
	w.emptyStrings("reservation")
	w.intField("alloc_memory", n.MemoryUsed>>20)
	w.intField("alloc_cpus", n.CPUsUsed)
	w.intField("alloc_idle_cpus", max(n.CPUs-n.CPUsUsed, 0))
	w.stringField("tres_used", n.TRESUsed())
	w.rawField("tres_weighted", "0.0")
	w.unsetNumbers("slurmd_start_time")
	w.intField("sockets", n.Sockets)
	w.intField("threads", 1)
	w.intField("temporary_disk", n.Disk>>20)
	w.intField("weight", 1)
	w.stringField("tres", n.TRES())
	w.stringField("version", "24.11")
	w.close('}')
}

func partitionsOf(node string, parts []fleet.Partition) (out []string) {
	for i := range parts {
		if slices.Contains(parts[i].Nodes, node) {
			out = append(out, parts[i].Name)
		}
	}
	return out
}
