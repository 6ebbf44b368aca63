package study

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sim/mig"
)

// Cluster is the file that describes the machines of a study.
type Cluster struct {
	Nodes []Nodes `yaml:"nodes"`
}

// Nodes are machines that are alike.
type Nodes struct {
	Names     string   `yaml:"names"` // host list: gpu[001-128]
	CPUs      int      `yaml:"cpus"`
	Memory    string   `yaml:"memory"` // 512G; empty: as much as anybody asks for
	GPUs      int      `yaml:"gpus"`
	GPUType   string   `yaml:"gpu_type"`
	GPUMemory string   `yaml:"gpu_memory"`
	MIG       []string `yaml:"mig"`  // profiles of the instances that each GPU is divided into
	Leaf      int      `yaml:"leaf"` // nodes below one leaf switch, in order; 0: no switches
	Path      []string `yaml:"path"` // the switches or blocks that all of them are below, from the top down; instead of leaf
	Features  []string `yaml:"features"`
	Parts     []string `yaml:"partitions"`
}

// maxNodes bounds a cluster.
const maxNodes = 200_000

// ReadCluster reads the file's contents. An error names file, line and column.
func ReadCluster(file string, data []byte) ([]fleet.Node, error) {
	var c Cluster
	if err := yaml.UnmarshalWithOptions(data, &c, yaml.Strict()); err != nil {
		return nil, errorIn(file, err)
	}
	if len(c.Nodes) == 0 {
		return nil, fault.New(fault.Invalid, "%s: it has no nodes", file).Advise("nodes: [{names: gpu[1-16], cpus: 96, gpus: 8}]   (docs/explanation/simulate.md)")
	}
	var out []fleet.Node
	seen := map[string]bool{}
	for i := range c.Nodes {
		list, err := c.Nodes[i].listNodes()
		if err != nil {
			return nil, fault.New(fault.Invalid, "%s: nodes[%d]: %w", file, i, err)
		}
		for _, n := range list {
			if seen[n.Name] {
				return nil, fault.New(fault.Invalid, "%s: nodes[%d]: names: %s was named before", file, i, n.Name)
			}
			seen[n.Name] = true
		}
		if out = append(out, list...); len(out) > maxNodes {
			return nil, fault.New(fault.Invalid, "%s: it has more than %d nodes", file, maxNodes)
		}
	}
	return out, nil
}

func errorIn(file string, err error) error {
	var ye yaml.Error
	if errors.As(err, &ye) && ye.GetToken() != nil {
		p := ye.GetToken().Position
		return fault.New(fault.Invalid, "%s:%d:%d: %s", file, p.Line, p.Column, ye.GetMessage()).Advise("docs/explanation/simulate.md has every field")
	}
	return fault.New(fault.Invalid, "%s: %w", file, err).Advise("docs/explanation/simulate.md has every field")
}

func (n *Nodes) listNodes() ([]fleet.Node, error) {
	names, err := hostlist.Expand(n.Names)
	switch {
	case n.Names == "":
		return nil, errors.New("names: which? a host list such as gpu[1-16]")
	case err != nil:
		return nil, fmt.Errorf("names: %w", err)
	case n.CPUs < 0 || n.GPUs < 0 || n.Leaf < 0:
		return nil, errors.New("cpus, gpus and leaf are not negative")
	case n.Leaf > 0 && len(n.Path) > 0:
		return nil, errors.New("path: leaf says it already")
	case n.CPUs == 0 && n.GPUs == 0:
		return nil, errors.New("cpus: a node has cpus or gpus")
	case n.GPUs > 16:
		return nil, errors.New("gpus: a node has at most 16")
	}
	memory, err := parseSize("memory", n.Memory, resource.Unlimited)
	if err != nil {
		return nil, err
	}
	device, err := parseSize("gpu_memory", n.GPUMemory, 0)
	if err != nil {
		return nil, err
	}
	out := make([]fleet.Node, len(names))
	devices, err := n.nodeDevices(device)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		out[i] = fleet.Node{Name: name, State: fleet.Up, Features: n.Features, Parts: n.Parts, Devices: devices, Path: n.Path}
		out[i].Capacity = resource.Vector{CPU: resource.CPUs(n.CPUs), Memory: memory}
		if n.CPUs == 0 {
			out[i].Capacity.CPU = resource.Unlimited
		}
		if n.Leaf > 0 {
			out[i].Path = []string{names[0] + "-leaf" + strconv.Itoa(i/n.Leaf+1)}
		}
	}
	return out, nil
}

// nodeDevices are the GPUs of a node, or the instances that they are divided into.
func (n *Nodes) nodeDevices(memory resource.Amount) ([]fleet.Device, error) {
	profiles := n.MIG
	if len(profiles) == 0 {
		profiles = []string{""}
	} else {
		model := mig.Find(n.GPUType, int(memory>>30))
		if model == nil {
			return nil, fmt.Errorf("mig: gpu_type %q cannot be divided, or how is not known here", n.GPUType)
		}
		if _, err := model.Place(profiles); err != nil {
			return nil, fmt.Errorf("mig: %w", err)
		}
	}
	var out []fleet.Device
	for gpu := range n.GPUs {
		for _, p := range profiles {
			d := fleet.Device{Index: len(out), Minor: -1, Kind: "gpu", Type: strings.ToLower(n.GPUType), Memory: memory, NUMA: -1, Declared: true, Profile: p}
			if p != "" {
				d.Parent = strconv.Itoa(gpu)
				d.Memory = 0
			}
			out = append(out, d)
		}
	}
	return out, nil
}

var sizes = regexp.MustCompile(`^(\d+)([KMGT])?$`)

// parseSize reads 512G.
func parseSize(field, text string, none resource.Amount) (resource.Amount, error) {
	if text == "" {
		return none, nil
	}
	m := sizes.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%s: %q is not a size such as 512G", field, text)
	}
	v, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is too large", field, text)
	}
	unit := map[string]int{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
	return resource.Amount(v).Mul(unit[m[2]]), nil
}

// One is a cluster of one machine with so many processors, which stands for a
// machine of which a trace says no more.
func One(procs int) []fleet.Node {
	return []fleet.Node{{Name: "machine", State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(procs), Memory: resource.Unlimited}}}
}
