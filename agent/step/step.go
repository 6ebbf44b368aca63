package step

// Info is a step as the allocator made it: its number and who runs where on what.
type Info struct {
	Step       int         `json:"step"`
	Name       string      `json:"name"`
	Tasks      int         `json:"tasks"`
	Components []Component `json:"components"` // at least one; ranks go over them in order
	Parts      []StepPart  `json:"parts"`      // ordered by component; the index is SLURM_NODEID
	Overlap    bool        `json:"overlap,omitempty"`
	Exact      bool        `json:"exact,omitempty"`
}

// Component is one program of a step and what every task of it gets.
type Component struct {
	Group        int    `json:"group"` // of the allocation
	Tasks        int    `json:"tasks"`
	First        int    `json:"first"`                   // its first rank
	CPUsPerTask  int    `json:"cpus_per_task,omitempty"` // 0: not asked
	TasksPerNode int    `json:"tasks_per_node,omitempty"`
	Distribution string `json:"distribution,omitempty"`
}

// StepPart is what a step has on one node for one component.
type StepPart struct {
	Component int           `json:"component"`
	Node      int           `json:"node"`  // index into Alloc.Nodes
	Ranks     []int         `json:"ranks"` // ascending; the index is SLURM_LOCALID
	CPUs      int           `json:"cpus"`
	Devices   []AllocDevice `json:"devices,omitempty"`
}
