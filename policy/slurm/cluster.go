package slurm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// Cluster is the machines that files of Slurm's declare.
type Cluster struct {
	Name  string
	nodes map[string]*machine
	order []string // names of nodes, as they were declared
	sets  map[string]set
	parts []part
	asked []setting // Nodes of partitions, of which it is not looked yet whether these are there
	trees int       // topologies that were read
	notes []string  // what the description leaves out
}

// machine is a node.
type machine struct {
	cpus, boards, sockets, perBoard, cores, threads int
	memory                                          int64 // MiB
	gpus                                            int
	types                                           []string // of GPUs, sorted
	features                                        []string
	path                                            []string // switches or blocks from the top down
	future                                          bool
}

// set is a NodeSet: by names or by a feature.
type set struct {
	nodes, feature string
}

// part is a partition with its nodes as they are written.
type part struct {
	name, nodes    string
	isDefault      bool
	longest, usual time.Duration // MaxTime and DefaultTime; 0: not said
}

// partNamed is the partition of a name, which is made if it is not there.
func (c *Cluster) partNamed(name string) *part {
	i := slices.IndexFunc(c.parts, func(p part) bool { return p.name == name })
	if i < 0 {
		i = len(c.parts)
		c.parts = append(c.parts, part{name: name})
	}
	return &c.parts[i]
}

// mostNodes bounds a cluster.
const mostNodes = 200_000

func newCluster() *Cluster { return &Cluster{nodes: map[string]*machine{}, sets: map[string]set{}} }

// Pool is the command that adds the cluster, as it is, as a pool; empty: it has no name. By
// which way it is reached the files cannot say.
func (c *Cluster) Pool() string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(c.Name))
	if name = strings.Trim(name, "-"); name == "" || len(name) > 63 {
		return ""
	}
	return "cox pool add " + name + " --engine slurm --local (where its commands are; elsewhere --ssh LOGIN or --rest URL)"
}

// Nodes is how many machines there are.
func (c *Cluster) Nodes() int { return len(c.order) }

func (m *machine) deviceCount() int {
	if m.cpus > 0 {
		return m.cpus
	}
	sockets := max(m.sockets, 1)
	if m.perBoard > 0 {
		sockets = m.perBoard * max(m.boards, 1)
	}
	return sockets * max(m.cores, 1) * max(m.threads, 1)
}

// checkMachines looks at what partitions name, when all nodes have been declared.
func (im *importer) checkMachines() {
	for _, s := range im.cluster.asked {
		if names, ok := im.expandHosts(s); ok {
			im.checkDeclared(s, names)
		}
	}
	im.cluster.dropFutureNodes()
}

// dropFutureNodes leaves out nodes that are not there yet.
func (c *Cluster) dropFutureNodes() {
	future := 0
	c.order = slices.DeleteFunc(c.order, func(n string) bool {
		if c.nodes[n].future {
			future++
		}
		return c.nodes[n].future
	})
	if future > 0 {
		c.notes = append(c.notes, fmt.Sprintf("%d nodes of State=FUTURE are left out", future))
	}
}

// partitionMembers are the nodes of a partition: names, ALL, or sets.
func (c *Cluster) partitionMembers(text string, seen map[string]bool) []string {
	if strings.EqualFold(text, "ALL") {
		return c.order
	}
	names, err := hostlist.Expand(text)
	if err != nil {
		return nil
	}
	var out []string
	for _, n := range names {
		s, ok := c.sets[n]
		switch {
		case !ok:
			out = append(out, n)
		case !seen[n]: // a set may name itself
			seen[n] = true
			out = append(out, c.ofSet(s, seen)...)
		}
	}
	return out
}

func (c *Cluster) ofSet(s set, seen map[string]bool) (out []string) {
	if s.nodes != "" {
		out = c.partitionMembers(s.nodes, seen)
	}
	for _, n := range c.order {
		if s.feature != "" && slices.Contains(c.nodes[n].features, s.feature) {
			out = append(out, n)
		}
	}
	return out
}

// partitionsByNode lists the partitions of each node, in their order.
func (c *Cluster) partitionsByNode() map[string][]string {
	out := map[string][]string{}
	for _, p := range c.parts {
		for _, n := range c.partitionMembers(p.nodes, map[string]bool{}) {
			if c.nodes[n] != nil && !slices.Contains(out[n], p.name) {
				out[n] = append(out[n], p.name)
			}
		}
	}
	return out
}

// alike is what nodes of one entry have in common.
type alike struct {
	cpus, gpus                   int
	memory                       int64
	types, features, parts, path string
}

// entry is nodes that are alike and follow each other.
type entry struct {
	alike
	names []string
}

func (c *Cluster) clusterEntries() (out []entry) {
	parts := c.partitionsByNode()
	for _, n := range c.order {
		m := c.nodes[n]
		a := alike{m.deviceCount(), m.gpus, m.memory, strings.Join(m.types, ","), strings.Join(m.features, ","), strings.Join(parts[n], ","), strings.Join(m.path, ",")}
		if k := len(out) - 1; k >= 0 && out[k].alike == a {
			out[k].names = append(out[k].names, n)
			continue
		}
		out = append(out, entry{a, []string{n}})
	}
	return out
}

// Write is the description of the machines for cox simulate --cluster.
func (c *Cluster) Write() []byte {
	var b strings.Builder
	b.WriteString("# for cox simulate --cluster; docs/explanation/simulate.md has every field\n")
	for _, n := range c.notes {
		fmt.Fprintf(&b, "# %s\n", plainComment(n))
	}
	b.WriteString("nodes:\n")
	for _, e := range c.clusterEntries() {
		kind, _, mixed := strings.Cut(e.types, ",")
		if mixed {
			fmt.Fprintf(&b, "  # GPUs of types %s, written as %s\n", plainComment(e.types), plainComment(kind))
		}
		if e.gpus > 16 {
			fmt.Fprintf(&b, "  # %d GPUs, written as 16\n", e.gpus)
		}
		fmt.Fprintf(&b, "  - {names: %q, cpus: %d", hostlist.CompressInOrder(e.names), e.cpus)
		if e.memory > 0 {
			fmt.Fprintf(&b, ", memory: %dM", e.memory)
		}
		if e.gpus > 0 {
			fmt.Fprintf(&b, ", gpus: %d", min(e.gpus, 16))
		}
		if kind != "" {
			fmt.Fprintf(&b, ", gpu_type: %q", kind)
		}
		for _, l := range []struct{ key, text string }{{"path", e.path}, {"features", e.features}, {"partitions", e.parts}} {
			if l.text != "" {
				fmt.Fprintf(&b, ", %s: [%s]", l.key, quoteText(l.text))
			}
		}
		b.WriteString("}\n")
	}
	return []byte(b.String())
}

func quoteText(text string) string {
	var out []string
	for t := range strings.SplitSeq(text, ",") {
		out = append(out, fmt.Sprintf("%q", t))
	}
	return strings.Join(out, ", ")
}

// plainComment makes a text fit for a comment.
func plainComment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == 0x85 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// String sums it up: "12 nodes, 96 GPUs (h100), 4 leaves, partitions batch and debug".
func (c *Cluster) String() string {
	gpus, types, leaves := 0, map[string]bool{}, map[string]bool{}
	for _, n := range c.order {
		m := c.nodes[n]
		gpus += m.gpus
		for _, t := range m.types {
			types[t] = true
		}
		if len(m.path) > 0 {
			leaves[strings.Join(m.path, "/")] = true
		}
	}
	out := []string{countedNoun(len(c.order), "node", "nodes")}
	if gpus > 0 {
		text := countedNoun(gpus, "GPU", "GPUs")
		if len(types) > 0 {
			text += " (" + strings.Join(slices.Sorted(maps.Keys(types)), ", ") + ")"
		}
		out = append(out, text)
	}
	if len(leaves) > 0 {
		out = append(out, countedNoun(len(leaves), "leaf", "leaves"))
	}
	if len(c.parts) > 0 {
		out = append(out, countedNoun(len(c.parts), "partition", "partitions"))
	}
	return strings.Join(out, ", ")
}

func countedNoun(n int, one, more string) string {
	if n == 1 {
		more = one
	}
	return fmt.Sprintf("%d %s", n, more)
}
