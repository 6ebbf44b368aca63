package wire

import (
	"errors"
	"fmt"
)

// Request is a step that srun wants.
type Request struct {
	Name       string             `json:"name"`
	Components []ComponentRequest `json:"components"`
	Exact      bool               `json:"exact,omitempty"`     // only the CPUs asked for, not all of the nodes'
	Overlap    bool               `json:"overlap,omitempty"`   // shares everything with other steps
	Immediate  bool               `json:"immediate,omitempty"` // refuse rather than wait
}

// ComponentRequest is what one component of a step wants of one task group.
type ComponentRequest struct {
	Group        int           `json:"group"`
	Tasks        int           `json:"tasks,omitempty"`     // 0: TasksPerNode, or one, on each node
	NodesMin     int           `json:"nodes_min,omitempty"` // 0: as many as the tasks need
	NodesMax     int           `json:"nodes_max,omitempty"` // 0: NodesMin
	TasksPerNode int           `json:"tasks_per_node,omitempty"`
	CPUsPerTask  int           `json:"cpus_per_task,omitempty"`
	Soft         bool          `json:"soft,omitempty"` // CPUsPerTask only where it fits: it was not asked of this step
	Overcommit   bool          `json:"overcommit,omitempty"`
	NodeList     []string      `json:"node_list,omitempty"` // all of these
	Exclude      []string      `json:"exclude,omitempty"`
	Relative     int           `json:"relative,omitempty"` // skip that many nodes of the allocation
	Distribution string        `json:"distribution,omitempty"`
	Devices      DeviceRequest `json:"devices"`
}

// DeviceRequest says how many devices a component wants. Nothing asked means all that
// the job has on its nodes.
type DeviceRequest struct {
	None    bool   `json:"none,omitempty"` // asked for 0
	Type    string `json:"type,omitempty"` // empty: any
	Total   int    `json:"total,omitempty"`
	PerNode int    `json:"per_node,omitempty"`
	PerTask int    `json:"per_task,omitempty"`
}

// Requested reports whether a number of devices was asked for.
func (d DeviceRequest) Requested() bool { return d.None || d.Total+d.PerNode+d.PerTask > 0 }

// Check reports why an allocator cannot be asked for a step.
func (r *Request) Check() error {
	tasks := 0
	for _, q := range r.Components {
		if q.Tasks < 0 || q.NodesMin < 0 || q.NodesMax < 0 || q.TasksPerNode < 0 || q.CPUsPerTask < 0 || q.Relative < 0 {
			return errors.New("a step's numbers cannot be negative")
		}
		for _, n := range []int{q.Tasks, q.NodesMin, q.TasksPerNode} {
			if n > MaxTasks {
				return fmt.Errorf("%d tasks are more than the %d that a step may have", n, MaxTasks)
			}
		}
		if tasks += max(q.Tasks, 1); tasks > MaxTasks {
			return fmt.Errorf("more than %d tasks are asked for in all", MaxTasks)
		}
	}
	return nil
}

// SharesGroups reports whether two components are for one task group.
func (r *Request) SharesGroups() bool {
	seen := make(map[int]bool)
	for _, q := range r.Components {
		if seen[q.Group] {
			return true
		}
		seen[q.Group] = true
	}
	return false
}
