package printer

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Ask says in one line what a job asks for: "8 nodes × 8 h100, 8 tasks, 4 h".
func Ask(s *job.Spec) string {
	if s == nil {
		return ""
	}
	var groups []string
	for i := range s.Groups {
		groups = append(groups, describeGroup(&s.Groups[i]))
	}
	parts := []string{strings.Join(groups, " + ")}
	if s.Array != nil {
		text := "array of " + Count(len(s.Array.Indices), "task")
		if s.Array.MaxRunning > 0 {
			text += fmt.Sprintf(", %d at a time", s.Array.MaxRunning)
		}
		parts = append(parts, text)
	}
	if s.TimeLimit > 0 {
		parts = append(parts, Duration(s.TimeLimit))
	}
	return strings.Join(parts, ", ")
}

// describeGroup says what one task group asks for.
func describeGroup(g *job.TaskGroup) string {
	nodes := Nodes(g)
	parts := []string{Count(nodes, "node")}
	if g.Elastic {
		parts[0] = fmt.Sprintf("%d-%d nodes", g.Nodes.Min, g.Nodes.Max)
	}
	if n, name := devicesPerNode(g); n > 0 {
		parts[0] += fmt.Sprintf(" × %d %s", n, name)
	}
	for _, d := range g.Total.Devices {
		parts = append(parts, fmt.Sprintf("%d %s in all", d.Count, deviceName(d)))
	}
	switch n := Tasks(g); {
	case g.Elastic:
		if each := max(g.TasksPerNode, 1); each > 1 {
			parts = append(parts, fmt.Sprintf("%d tasks a node", each))
		}
		parts = append(parts, "elastic")
		if g.Subgroup > 1 {
			parts[len(parts)-1] += fmt.Sprintf(" by %d nodes", g.Subgroup)
		}
	case n > 1 || nodes > 1:
		parts = append(parts, Count(n, "task"))
	}
	if g.CPUsPerTask > 1 {
		parts = append(parts, fmt.Sprintf("%d CPUs a task", g.CPUsPerTask))
	}
	if m := g.PerNode.Memory; m > 0 {
		parts = append(parts, Bytes(int64(m))+" a node")
	}
	if g.Constraint.Text != "" {
		parts = append(parts, "constraint "+g.Constraint.Text)
	}
	if g.Exclusive {
		parts = append(parts, "whole nodes")
	}
	return strings.Join(parts, ", ")
}

// Nodes is the least number of nodes that a group can start on, as far as the
// request says it.
func Nodes(g *job.TaskGroup) int {
	n := max(g.Nodes.Min, 1)
	if g.Nodes.Min == 0 && g.TasksPerNode > 0 && g.Tasks.Want > 0 {
		n = (g.Tasks.Want + g.TasksPerNode - 1) / g.TasksPerNode
	}
	return n
}

// Tasks is the number of tasks that a group asks for.
func Tasks(g *job.TaskGroup) int {
	switch {
	case g.Tasks.Want > 0:
		return g.Tasks.Want
	case g.TasksPerNode > 0:
		return Nodes(g) * g.TasksPerNode
	}
	return Nodes(g)
}

func devicesPerNode(g *job.TaskGroup) (n int, name string) {
	name = "gpu"
	perNode := (Tasks(g) + Nodes(g) - 1) / Nodes(g)
	for _, d := range g.PerNode.Devices {
		n, name = n+d.Count, deviceName(d)
	}
	for _, d := range g.PerTask.Devices {
		n, name = n+d.Count*perNode, deviceName(d)
	}
	return n, name
}

func deviceName(d resource.DeviceRequest) string {
	switch {
	case d.Profile != "":
		return d.Profile
	case d.Type != "":
		return d.Type
	}
	return d.KindOf()
}

// sumRequests sums what all groups of a job ask for.
func sumRequests(s *job.Spec) (nodes, gpus int, cpus float64) {
	for i := range s.Groups {
		g := &s.Groups[i]
		n := Nodes(g)
		per, _ := devicesPerNode(g)
		nodes += n
		gpus += n * per
		for _, d := range g.Total.Devices {
			gpus += d.Count
		}
		cpus += float64(g.PerTask.CPU.Mul(Tasks(g)).Add(g.PerNode.CPU.Mul(n))) / float64(resource.OneCPU)
	}
	return nodes, gpus, cpus
}
