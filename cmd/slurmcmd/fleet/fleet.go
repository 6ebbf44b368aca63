// Package fleet is nodes and partitions as Slurm's commands show them.
package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/printable"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// Node is a node with what is used of it.
type Node struct {
	Name, Pool, Engine, State, Why, By, Address string
	Since                                       time.Time
	Features, Jobs                              []string
	CPUs, CPUsUsed                              int64 // whole ones; used is rounded up
	Memory, MemoryUsed                          int64 // bytes
	Sockets                                     int64
	GRES, GRESUsed                              string // as Slurm writes it: gpu:h100:8; "" for none
	GPUs, GPUsUsed                              int64
	Disk                                        int64 // bytes of scratch; 0: not known

	// Of the machine's kernel; empty and zero where the server does not know it.
	Arch, OS string
	Booted   time.Time
	Load     float64

	kinds map[int64]string // of devices, by their numbers
}

// DeviceKind is the kind and type of a device by its number, "gpu:h100"; empty: there is none.
func (n *Node) DeviceKind(index int64) string { return n.kinds[index] }

// KnowsSystem reports whether the server said what the kernel says.
func (n *Node) KnowsSystem() bool { return n.OS != "" }

// TRES is what the node has in Slurm's form: cpu=32,mem=256G,billing=32,gres/gpu=8.
func (n *Node) TRES() string {
	return appendGPUs(fmt.Sprintf("cpu=%d,mem=%s,billing=%d", n.CPUs, slurmfmt.FormatMemory(n.Memory), n.CPUs), n.GPUs)
}

// TRESUsed is what jobs hold of the node, in the same form; empty: nothing.
func (n *Node) TRESUsed() string {
	if !n.Busy() {
		return ""
	}
	text := fmt.Sprintf("cpu=%d", n.CPUsUsed)
	if n.MemoryUsed > 0 {
		text += ",mem=" + slurmfmt.FormatMemory(n.MemoryUsed)
	}
	return appendGPUs(text, n.GPUsUsed)
}

func appendGPUs(tres string, count int64) string {
	if count == 0 {
		return tres
	}
	return fmt.Sprintf("%s,gres/gpu=%d", tres, count)
}

// Partition is a partition with its limits, seconds; 0: none.
type Partition struct {
	Name, State            string
	Default                bool
	Nodes                  []string
	TimeLimit, DefaultTime int64
}

// Capacity is what the nodes of a partition have together.
type Capacity struct {
	Nodes, CPUs, Memory, GPUs int64
}

// Sum adds up what the partition's nodes have; nodes are all nodes there are.
func (p *Partition) Sum(nodes []Node) (c Capacity) {
	c.Nodes = int64(len(p.Nodes))
	for i := range nodes {
		if slices.Contains(p.Nodes, nodes[i].Name) {
			c.CPUs, c.Memory, c.GPUs = c.CPUs+nodes[i].CPUs, c.Memory+nodes[i].Memory, c.GPUs+nodes[i].GPUs
		}
	}
	return c
}

// TRES is the sum in Slurm's form: cpu=64,mem=512G,node=2,billing=64,gres/gpu=16.
func (c *Capacity) TRES() string {
	return appendGPUs(fmt.Sprintf("cpu=%d,mem=%s,node=%d,billing=%d", c.CPUs, slurmfmt.FormatMemory(c.Memory), c.Nodes, c.CPUs), c.GPUs)
}

// Nodes asks the server for all nodes, sorted as Slurm sorts names.
func Nodes(c *fastclient.Client) ([]Node, error) {
	v, err := c.JSON("GET", "/v1/nodes", nil)
	if err != nil {
		return nil, err
	}
	var out []Node
	for _, n := range v.Get("nodes").Items() {
		out = append(out, readNode(n))
	}
	slices.SortFunc(out, func(a, b Node) int { return hostlist.Compare(a.Name, b.Name) })
	return out, nil
}

func readNode(v fastclient.Value) Node {
	n := Node{
		Name: v.Get("name").Text(), Pool: v.Get("pool").Text(), Engine: v.Get("engine").Text(), State: v.Get("state").Text(),
		Why: string(printable.Clean([]byte(v.Get("why").Text()))), By: v.Get("by").Text(), Address: v.Get("address").Text(), Since: v.Get("since").Time(),
		Features: v.Get("features").Texts(), Jobs: v.Get("jobs").Texts(),
		CPUs: int64(v.Get("cpus").Float()), CPUsUsed: roundUp(v.Get("cpus_used").Float()),
		Memory: v.Get("memory").Int(), MemoryUsed: v.Get("memory_used").Int(), Sockets: max(v.Get("sockets").Int(), 1),
	}
	n.Disk = v.Get("disk").Int()
	if s := v.Get("system"); v.Has("system") {
		n.Arch, n.OS, n.Booted, n.Load = s.Get("arch").Text(), s.Get("os").Text(), s.Get("booted").Time(), s.Get("load").Float()
	}
	n.countDevices(v.Get("devices").Items())
	n.addCountedDevices(v.Get("counted").Items())
	return n
}

// addCountedDevices adds the GPUs of a pool as a whole, which have no numbers: by type, and then those of
// which no type is known.
func (n *Node) addCountedDevices(list []fastclient.Value) {
	var all, used []string
	add := func(name string, count, taken int64) {
		if count > 0 {
			all = append(all, name+":"+strconv.FormatInt(count, 10))
			used = append(used, name+":"+strconv.FormatInt(taken, 10))
		}
	}
	plain, plainUsed := int64(0), int64(0)
	for _, d := range list {
		name, count, taken := d.Get("name").Text(), d.Get("all").Int(), d.Get("used").Int()
		if kind, t, _ := strings.Cut(name, ":"); kind == t {
			continue // a type called like its kind is none: the kind's own entry counts these
		}
		if _, _, typed := strings.Cut(name, ":"); typed {
			add(name, count, taken)
			plain, plainUsed = plain-count, plainUsed-taken
			continue
		}
		n.GPUs, n.GPUsUsed = n.GPUs+count, n.GPUsUsed+taken
		plain, plainUsed = plain+count, plainUsed+taken
	}
	if len(list) == 0 {
		return
	}
	add("gpu", plain, max(plainUsed, 0))
	n.GRES, n.GRESUsed = strings.Join(all, ","), strings.Join(used, ",")
}

func roundUp(f float64) int64 {
	n := int64(f)
	if float64(n) < f {
		n++
	}
	return n
}

// countDevices counts GPU-like units by kind and type.
func (n *Node) countDevices(list []fastclient.Value) {
	n.kinds = map[int64]string{}
	type sort struct {
		name        string
		count, used int64
		index       []string
	}
	var kinds []sort
	for _, d := range list {
		name := d.Get("kind").Text()
		if t := d.Get("type").Text(); t != "" && t != name { // a type called like its kind is none
			name += ":" + t
		}
		n.kinds[d.Get("index").Int()] = name
		i := slices.IndexFunc(kinds, func(s sort) bool { return s.name == name })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, sort{name: name})
		}
		kinds[i].count++
		n.GPUs++
		if len(d.Get("jobs").Items()) > 0 {
			kinds[i].used++
			n.GPUsUsed++
			kinds[i].index = append(kinds[i].index, d.Get("index").Text())
		}
	}
	var all, used []string
	for _, s := range kinds {
		all = append(all, s.name+":"+strconv.FormatInt(s.count, 10))
		index := "N/A"
		if len(s.index) > 0 {
			index = strings.Trim(hostlist.Compress(s.index), "[]")
		}
		used = append(used, s.name+":"+strconv.FormatInt(s.used, 10)+"(IDX:"+index+")")
	}
	n.GRES, n.GRESUsed = strings.Join(all, ","), strings.Join(used, ",")
}

// Busy reports whether a job holds something of the node.
func (n *Node) Busy() bool { return len(n.Jobs) > 0 || n.CPUsUsed > 0 }

// Words are Slurm's short and long word for the node's state, and its rank in the
// order in which sinfo lists states: larger ones first.
func (n *Node) Words() (short, long string, rank int) {
	switch {
	case n.State == "draining" && n.Busy():
		return "drng", "draining", 9
	case n.State == "draining":
		return "drain", "drained", 8
	case n.State == "down":
		return "down", "down", 1
	case n.State != "up":
		return "unk*", "unknown*", 0
	case !n.Busy():
		return "idle", "idle", 2
	case n.CPUsUsed >= n.CPUs:
		return "alloc", "allocated", 3
	}
	return "mix", "mixed", 5
}

// Usable is how many CPUs may be given out: none where the node takes no new work.
func (n *Node) Usable() bool { return n.State == "up" }

// Cores is how many CPUs each socket has.
func (n *Node) Cores() int64 { return max(n.CPUs/n.Sockets, 1) }

// Partitions asks the server for all partitions.
func Partitions(c *fastclient.Client) ([]Partition, error) {
	v, err := c.JSON("GET", "/v1/partitions", nil)
	if err != nil {
		return nil, err
	}
	var out []Partition
	for _, p := range v.Get("partitions").Items() {
		out = append(out, Partition{
			Name: p.Get("name").Text(), State: p.Get("state").Text(), Default: p.Get("default").Bool(), Nodes: p.Get("nodes").Texts(),
			TimeLimit: p.Get("time_limit").Int(), DefaultTime: p.Get("default_time").Int(),
		})
	}
	return out, nil
}
