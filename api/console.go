package api

import "time"

// NodeRows is a page of nodes in short, with counts of all that match.
type NodeRows struct {
	Rows    []NodeRow      `json:"rows"`
	Total   int            `json:"total" doc:"rows on all pages"`
	States  map[string]int `json:"states" doc:"nodes by state, on all pages"`
	Devices map[string]int `json:"devices" doc:"devices by what they do, on all pages: free, used, foreign, fenced, down"`
	Change  uint64         `json:"change" doc:"the last event that the rows reflect, for watch"`
}

// NodeRow is a node in short.
type NodeRow struct {
	Name       string       `json:"name"`
	Pool       string       `json:"pool"`
	Engine     string       `json:"engine"`
	State      string       `json:"state" doc:"up, draining, down, unknown"`
	Why        string       `json:"why,omitempty"`
	Path       []string     `json:"path,omitempty" doc:"topology from the top down"`
	Virtual    bool         `json:"virtual,omitempty"`
	Owner      string       `json:"owner,omitempty" doc:"the pool that may start work on its machine; left out where that needs no record"`
	Handover   string       `json:"handover,omitempty" doc:"of the machine, while one is under way"`
	CPUs       float64      `json:"cpus"`
	CPUsUsed   float64      `json:"cpus_used"`
	Memory     int64        `json:"memory" doc:"bytes"`
	MemoryUsed int64        `json:"memory_used"`
	Types      []string     `json:"types,omitempty" doc:"of its devices"`
	Devices    string       `json:"devices,omitempty" doc:"a letter for each device: . free, u used, f foreign (programs of others use it), x fenced, d down"`
	Counted    []Counted    `json:"counted,omitempty" doc:"of a pool whose own scheduler chooses the nodes: its GPUs, which have no numbers here"`
	Fences     int          `json:"fences,omitempty" doc:"what checks keep from new work: the node, or devices of it"`
	Jobs       []NodeHolder `json:"jobs,omitempty" doc:"that hold something here"`
	Hidden     int          `json:"hidden,omitempty" doc:"jobs that hold something here and that the caller may not see"`
}

// NodeHolder is a job that holds something on a node.
type NodeHolder struct {
	Job     string `json:"job" doc:"as shown: 7, 7_3"`
	JobName string `json:"job_name,omitempty"`
	User    string `json:"user,omitempty"`
	Account string `json:"account,omitempty"`
	Devices []int  `json:"devices,omitempty" doc:"places of its devices in the letters of the node"`
}

// Topology is all nodes by their place.
type Topology struct {
	Groups  []TopologyGroup `json:"groups" doc:"by pool, then by path"`
	Labels  []string        `json:"labels" doc:"what the numbers in label stand for: states, pools, users or accounts"`
	Total   int             `json:"total" doc:"nodes"`
	States  map[string]int  `json:"states"`
	Devices map[string]int  `json:"devices" doc:"free, used, foreign, fenced, down"`
	Change  uint64          `json:"change" doc:"the last event that it reflects, for watch"`
}

// TopologyGroup is the nodes of one place. Its lists have an element for each node.
type TopologyGroup struct {
	Pool    string   `json:"pool"`
	Path    []string `json:"path,omitempty" doc:"from the top down: spine1, leaf3"`
	Nodes   string   `json:"nodes" doc:"host list, in the order of the lists"`
	Devices []int    `json:"devices" doc:"that each node has"`
	Used    []int    `json:"used" doc:"devices that jobs hold; of a node without devices, percent of its CPUs"`
	Label   []int    `json:"label" doc:"place in labels; -1: none"`
	Shut    int      `json:"shut,omitempty" doc:"devices of the group that are foreign, fenced or down"`
}

// Overview is a cluster at a glance.
type Overview struct {
	Jobs    map[string]int `json:"jobs" doc:"by state, of all users; ended ones as long as they are in memory"`
	Waiting map[string]int `json:"waiting" doc:"by the code of the first reason, of all users"`
	Nodes   map[string]int `json:"nodes" doc:"by state"`
	Use     []PoolUse      `json:"use" doc:"by pool, and by kind and type of device"`
	Recent  []Event        `json:"recent" doc:"what changed last, newest first, without events that the caller may not see"`
	Change  uint64         `json:"change" doc:"the last event that it reflects, for watch"`
}

// PoolUse is how much of a pool is used.
type PoolUse struct {
	Pool       string      `json:"pool"`
	Engine     string      `json:"engine"`
	Nodes      int         `json:"nodes"`
	Up         int         `json:"up" doc:"nodes that take work"`
	CPUs       float64     `json:"cpus"`
	CPUsUsed   float64     `json:"cpus_used"`
	Memory     int64       `json:"memory" doc:"bytes"`
	MemoryUsed int64       `json:"memory_used"`
	Devices    []DeviceUse `json:"devices,omitempty"`
}

// DeviceUse is what devices of one kind and type do.
type DeviceUse struct {
	Kind    string `json:"kind"`
	Type    string `json:"type,omitempty"`
	All     int    `json:"all"`
	Used    int    `json:"used"`
	Foreign int    `json:"foreign,omitempty" doc:"programs of others use them"`
	Fenced  int    `json:"fenced,omitempty" doc:"checks keep them from new work"`
	Down    int    `json:"down,omitempty"`
}

// Plan is what runs, what is planned and what is reserved over the next hours.
type Plan struct {
	From         time.Time     `json:"from"`
	Until        time.Time     `json:"until"`
	Running      []PlannedJob  `json:"running" doc:"by their end; at most limit"`
	Waiting      []PlannedJob  `json:"waiting" doc:"by their start; at most limit"`
	Reservations []Reservation `json:"reservations" doc:"that hold within the time"`
	MoreRunning  int           `json:"more_running,omitempty" doc:"running jobs that are left out, also those that the caller may not see"`
	MoreWaiting  int           `json:"more_waiting,omitempty" doc:"waiting jobs that are left out: nothing is planned for them within the time, or the caller may not see them"`
	Made         time.Time     `json:"made,omitzero" doc:"when starts were planned; left out: not yet"`
}

// PlannedJob is a job of a plan.
type PlannedJob struct {
	Job      string    `json:"job" doc:"as shown: 7, 7_3"`
	JobName  string    `json:"job_name,omitempty"`
	User     string    `json:"user"`
	Account  string    `json:"account,omitempty"`
	Pool     string    `json:"pool,omitempty"`
	Nodes    int       `json:"nodes"`
	NodeList string    `json:"node_list,omitempty" doc:"host list; of a waiting job, where it is planned to start: left out if the scheduler of its pool chooses, or many jobs start before it"`
	GPUs     int       `json:"gpus,omitempty"`
	Start    time.Time `json:"start" doc:"of a waiting job: estimated"`
	End      time.Time `json:"end,omitzero" doc:"by its time limit; left out: it has none"`
	Expected time.Time `json:"expected,omitzero" doc:"the end as jobs like it took so long; left out: not known"`
}
