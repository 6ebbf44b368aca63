package pmix

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/agent/step"
)

// HelperName is the program that is a PMIx server. It is looked for at $COX_PMIX_HELPER,
// beside the running binary, and in PATH.
const HelperName = "cox-pmix"

// DirPrefix is before the names of the directories of helpers.
const DirPrefix = "cox-pmix."

// Descriptors of the helper.
const (
	ControlFD = 0 // a stream of frames to the node of the step
	ListenFD  = 1 // the socket at which the programs of the node arrive
)

// Orders is what a helper is told first, as JSON in frames of kind MsgPMIx.
type Orders struct {
	Layout
	Space   string `json:"space"`              // the PMIx namespace: the step's name
	Server  string `json:"server"`             // the namespace of the servers; the rank is Self
	Self    int    `json:"self"`               // index into Nodes
	Version int    `json:"version,omitempty"`  // of libpmix, that was asked for; 0: any that is served
	TempDir string `json:"temp_dir"`           // which the helper makes and removes
	Program string `json:"program"`            // the first word of the command, beside which a libpmix may lie
	Dir     string `json:"dir"`                // in which the program is looked for
	InImage bool   `json:"in_image,omitempty"` // the node is a container of the job's image, as a pod is
}

// Layout is a step as PMIx sees it.
type Layout struct {
	Nodes []LayoutNode `json:"nodes"`
	Apps  []LayoutApp  `json:"apps"`
}

// LayoutNode is one node of a step and its ranks, in order.
type LayoutNode struct {
	Name  string `json:"name"`
	Ranks []int  `json:"ranks"`
	alloc int
}

// LayoutApp is one program of a step: a block of ranks.
type LayoutApp struct {
	First int `json:"first"`
	Tasks int `json:"tasks"`
}

// NewLayout gives the layout of a step. Nodes are in the order of the step's parts.
func NewLayout(a *step.Alloc, info *step.Info) Layout {
	var l Layout
	for _, p := range info.Parts {
		i := l.NodeOf(p.Node)
		if i < 0 {
			i = len(l.Nodes)
			l.Nodes = append(l.Nodes, LayoutNode{Name: a.Nodes[p.Node].Name, alloc: p.Node})
		}
		l.Nodes[i].Ranks = append(l.Nodes[i].Ranks, p.Ranks...)
	}
	for i := range l.Nodes {
		slices.Sort(l.Nodes[i].Ranks)
	}
	for _, c := range info.Components {
		l.Apps = append(l.Apps, LayoutApp{First: c.First, Tasks: c.Tasks})
	}
	return l
}

// NodeOf is the index of a node of the allocation, or -1.
func (l *Layout) NodeOf(alloc int) int {
	return slices.IndexFunc(l.Nodes, func(n LayoutNode) bool { return n.alloc == alloc })
}

// Tasks is the number of ranks.
func (l *Layout) Tasks() (n int) {
	for _, v := range l.Nodes {
		n += len(v.Ranks)
	}
	return n
}

// Holder is the index of the node that has a rank, or -1.
func (l *Layout) Holder(rank int) int {
	return slices.IndexFunc(l.Nodes, func(n LayoutNode) bool { _, ok := slices.BinarySearch(n.Ranks, rank); return ok })
}

// Names are the namespaces of a step: of its ranks, and of its PMIx servers.
func Names(a *step.Alloc, info *step.Info) (space, server string) {
	space = fmt.Sprintf("cox.%s.%d.%d", a.Job, a.Attempt, info.Step)
	return space, space + "-server"
}
