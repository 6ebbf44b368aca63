package compat

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Case is a site, its queue and what became of it.
type Case struct {
	Seed       uint64      `json:"seed"`
	Nodes      []Node      `json:"nodes"`
	Leaves     [][]string  `json:"leaves,omitempty"` // node names of each leaf switch, below one spine; none: no topology
	Partitions []Partition `json:"partitions"`
	Jobs       []Job       `json:"jobs"`
	Rounds     []Round     `json:"rounds"`
}

// Node is a node as in slurm.conf.
type Node struct {
	Name     string   `json:"name"`
	CPUs     int      `json:"cpus"`
	Memory   int      `json:"memory"` // MiB
	GPUs     int      `json:"gpus,omitempty"`
	GPUType  string   `json:"gpu_type,omitempty"`
	Features []string `json:"features,omitempty"`
}

// Partition is a partition as in slurm.conf.
type Partition struct {
	Name  string   `json:"name"`
	Nodes []string `json:"nodes"`
	Tier  int      `json:"tier"`
}

// Job is what is said to sbatch.
type Job struct {
	Args     []string `json:"args"`
	Priority int      `json:"priority"`
}

// Round is what happens between two looks of the schedulers at the queue, and what
// they start then.
type Round struct {
	Comes  []int   `json:"comes"`          // jobs (by index) that are submitted
	Ends   []int   `json:"ends,omitempty"` // jobs (by index) that end before it
	Starts []Start `json:"starts,omitempty"`
}

// Start is a decision of slurmctld.
type Start struct {
	Job      int      `json:"job"` // by index
	Nodes    []string `json:"nodes"`
	Backfill bool     `json:"backfill,omitempty"`
}

// drawCase makes the case of a number, without what becomes of it.
func drawCase(seed uint64) *Case {
	r := rand.New(rand.NewPCG(seed, 0x51))
	c := &Case{Seed: seed}
	kinds := 1 + r.IntN(3)
	for k := range kinds {
		proto := Node{CPUs: []int{4, 8, 16}[r.IntN(3)], Memory: []int{8000, 16000, 64000}[r.IntN(3)]}
		if r.IntN(3) > 0 {
			proto.GPUs, proto.GPUType = []int{2, 4, 8}[r.IntN(3)], []string{"a100", "h100"}[r.IntN(2)]
		}
		proto.Features = []string{fmt.Sprintf("kind%d", k+1)}
		if r.IntN(2) == 0 {
			proto.Features = append(proto.Features, "ib")
		}
		for range 2 + r.IntN(4) {
			proto.Name = fmt.Sprintf("n%d", len(c.Nodes)+1)
			c.Nodes = append(c.Nodes, proto)
		}
	}
	if r.IntN(3) > 0 {
		for from := 0; from < len(c.Nodes); {
			to := min(from+1+r.IntN(4), len(c.Nodes))
			c.Leaves = append(c.Leaves, nodeNames(c.Nodes[from:to]))
			from = to
		}
	}
	for i := range 1 + r.IntN(3) {
		p := Partition{Name: fmt.Sprintf("p%d", i+1), Tier: 1 + r.IntN(2), Nodes: nodeNames(c.Nodes)}
		if i > 0 {
			from := r.IntN(len(c.Nodes))
			p.Nodes = p.Nodes[from : from+1+r.IntN(len(c.Nodes)-from)]
		}
		c.Partitions = append(c.Partitions, p)
	}
	n := 8 + r.IntN(12)
	places := r.Perm(n)
	for i := range n {
		c.Jobs = append(c.Jobs, Job{Args: c.drawArgs(r, i), Priority: 1000 - places[i]})
	}
	return c
}

// drawArgs draws what a job asks for. No two limits are the same, nor near each other:
// the moment at which a scheduler looks is not part of the comparison.
func (c *Case) drawArgs(r *rand.Rand, i int) []string {
	p := c.Partitions[r.IntN(len(c.Partitions))]
	like := c.nodeByName(p.Nodes[r.IntN(len(p.Nodes))])
	out := []string{"-p", p.Name, "-t", fmt.Sprint(10 + 7*i + 150*r.IntN(4))}
	nodes := 1
	if r.IntN(3) == 0 {
		nodes = 1 + r.IntN(min(4, len(p.Nodes)))
	}
	out = append(out, "-N", fmt.Sprint(nodes))
	switch r.IntN(3) {
	case 0:
		out = append(out, "-n", fmt.Sprint(nodes*(1+r.IntN(like.CPUs))))
	case 1:
		out = append(out, "--ntasks-per-node", fmt.Sprint(1+r.IntN(2)), "-c", fmt.Sprint(1+r.IntN(max(like.CPUs/2, 1))))
	}
	out = append(out, "--mem", fmt.Sprint(like.Memory/8*(1+r.IntN(4))))
	if like.GPUs > 0 && r.IntN(2) == 0 {
		gres := "gpu:"
		if r.IntN(2) == 0 {
			gres += like.GPUType + ":"
		}
		out = append(out, "--gres", gres+fmt.Sprint(1+r.IntN(like.GPUs)))
	}
	if r.IntN(4) == 0 {
		out = append(out, "-C", like.Features[r.IntN(len(like.Features))])
	}
	if r.IntN(6) == 0 {
		out = append(out, "--exclusive")
	}
	return out
}

func (c *Case) nodeByName(name string) Node {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n
		}
	}
	panic("compat: no node " + name)
}

func nodeNames(nodes []Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return out
}

// isBackfillOnly reports whether the main scheduler is left out in practice, so that the
// backfill scheduler decides everything.
func (c *Case) isBackfillOnly() bool { return c.Seed%2 == 0 }

// siteConf is the part of slurm.conf that the case decides.
func (c *Case) siteConf() string {
	var b strings.Builder
	b.WriteString("PriorityType=priority/basic\nSchedulerType=sched/backfill\nGresTypes=gpu\n")
	b.WriteString("SchedulerParameters=bf_window=4320,default_queue_depth=1000,sched_interval=2,")
	if c.isBackfillOnly() {
		b.WriteString("defer,bf_interval=2,batch_sched_delay=0,sched_min_interval=1500000\n")
	} else {
		b.WriteString("bf_interval=3,batch_sched_delay=1,sched_min_interval=1000000\n")
	}
	if c.Leaves != nil {
		b.WriteString("TopologyPlugin=topology/tree\n")
	}
	for _, n := range c.Nodes {
		gres := ""
		if n.GPUs > 0 {
			gres = fmt.Sprintf(" Gres=gpu:%s:%d", n.GPUType, n.GPUs)
		}
		fmt.Fprintf(&b, "NodeName=%s CPUs=%d Sockets=1 CoresPerSocket=%d ThreadsPerCore=1 RealMemory=%d Features=%s%s State=CLOUD NodeHostname=localhost NodeAddr=127.0.0.1\n",
			n.Name, n.CPUs, n.CPUs, n.Memory, strings.Join(n.Features, ","), gres)
	}
	for i, p := range c.Partitions {
		fmt.Fprintf(&b, "PartitionName=%s Nodes=%s PriorityTier=%d Default=%s MaxTime=INFINITE State=UP\n",
			p.Name, strings.Join(p.Nodes, ","), p.Tier, map[bool]string{true: "YES", false: "NO"}[i == 0])
	}
	return b.String()
}

// topologyConf is topology.conf.
func (c *Case) topologyConf() string {
	var b strings.Builder
	for i, l := range c.Leaves {
		fmt.Fprintf(&b, "SwitchName=leaf%d Nodes=%s\n", i+1, strings.Join(l, ","))
	}
	if len(c.Leaves) > 0 {
		fmt.Fprintf(&b, "SwitchName=spine Switches=leaf[1-%d]\n", len(c.Leaves))
	}
	return b.String()
}
