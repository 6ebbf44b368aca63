package fleet

import "time"

// Inventory is what a pool has beside the capacity of its nodes, as the system that its
// engine drives tells it: who may use what, for how long, and who does. It is for people,
// and for what can be refused at once; nothing is placed by it. Times are in seconds; 0 and
// an empty text or list are no limit. Amounts are in the system's own form ("cpu=8,gres/gpu=2").
type Inventory struct {
	Taken   time.Time `json:"taken" doc:"when it was told"`
	Unknown []string  `json:"unknown,omitempty" doc:"what was not told, and why"`
	// Enforced are the rules about accounts that the system enforces: associations, limits, qos.
	Enforced     []string      `json:"enforced,omitempty" doc:"rules about accounts that are enforced: associations, limits, qos; left out if it is not known"`
	Partitions   []Partition   `json:"partitions,omitempty"`
	QOS          []QOS         `json:"qos,omitempty"`
	Associations []Association `json:"associations,omitempty"`
	Reservations []Reservation `json:"reservations,omitempty"`
	Licenses     []License     `json:"licenses,omitempty"`
	Nodes        []NodeStock   `json:"nodes,omitempty"`
	Use          []Use         `json:"use,omitempty" doc:"jobs of everybody, by user and partition"`
}

// Partition is a queue of the system's.
type Partition struct {
	Name         string   `json:"name"`
	Default      bool     `json:"default,omitempty"`
	State        string   `json:"state" doc:"UP, DOWN, DRAIN, INACTIVE"`
	Nodes        string   `json:"nodes,omitempty" doc:"a host list"`
	MaxTime      int64    `json:"max_time,omitempty" doc:"seconds; left out: no limit"`
	DefaultTime  int64    `json:"default_time,omitempty"`
	MinNodes     int      `json:"min_nodes,omitempty"`
	MaxNodes     int      `json:"max_nodes,omitempty" doc:"of a job; left out: no limit"`
	Accounts     []string `json:"accounts,omitempty" doc:"that may use it; left out: all"`
	DenyAccounts []string `json:"deny_accounts,omitempty"`
	AllowQOS     []string `json:"allow_qos,omitempty" doc:"left out: all"`
	DenyQOS      []string `json:"deny_qos,omitempty"`
	Groups       []string `json:"groups,omitempty" doc:"whose members may use it; left out: all"`
	QOS          string   `json:"qos,omitempty" doc:"whose limits hold in it"`
	Priority     int      `json:"priority,omitempty" doc:"tier: larger goes first"`
}

// QOS is a set of limits that a job may choose.
type QOS struct {
	Name             string   `json:"name"`
	Priority         int64    `json:"priority,omitempty"`
	Flags            []string `json:"flags,omitempty"`
	MaxTime          int64    `json:"max_time,omitempty"`
	MaxPerJob        string   `json:"max_per_job,omitempty"`
	MaxPerUser       string   `json:"max_per_user,omitempty"`
	MaxPerAccount    string   `json:"max_per_account,omitempty"`
	MaxJobsPerUser   int      `json:"max_jobs_per_user,omitempty"`
	MaxSubmitPerUser int      `json:"max_submit_per_user,omitempty"`
	Group            string   `json:"group,omitempty" doc:"of all its jobs together"`
}

// Association is what an account, or a user in one, may use.
type Association struct {
	Account   string   `json:"account"`
	Parent    string   `json:"parent,omitempty"`
	User      string   `json:"user,omitempty" doc:"left out: of the account"`
	Partition string   `json:"partition,omitempty" doc:"left out: of all"`
	Default   bool     `json:"default,omitempty" doc:"the user's jobs that name no account go there"`
	QOS       []string `json:"qos,omitempty" doc:"that its jobs may have"`
	Shares    int      `json:"shares,omitempty"`
	MaxTime   int64    `json:"max_time,omitempty"`
	MaxPerJob string   `json:"max_per_job,omitempty"`
	MaxJobs   int      `json:"max_jobs,omitempty"`
	MaxSubmit int      `json:"max_submit,omitempty"`
	Group     string   `json:"group,omitempty" doc:"of all its jobs together"`
}

// Reservation is nodes that are kept for some.
type Reservation struct {
	Name      string    `json:"name"`
	State     string    `json:"state,omitempty" doc:"ACTIVE, INACTIVE"`
	Start     time.Time `json:"start"`
	End       time.Time `json:"end"`
	Nodes     string    `json:"nodes,omitempty" doc:"a host list"`
	Partition string    `json:"partition,omitempty"`
	Users     []string  `json:"users,omitempty"`
	Accounts  []string  `json:"accounts,omitempty"`
	Groups    []string  `json:"groups,omitempty"`
	Flags     []string  `json:"flags,omitempty"`
	Licenses  string    `json:"licenses,omitempty"`
}

// License is a counted name.
type License struct {
	Name     string `json:"name"`
	Total    int64  `json:"total"`
	Used     int64  `json:"used"`
	Reserved int64  `json:"reserved,omitempty"`
}

// NodeStock is a node with what of it ours and others hold. What a job on several nodes
// holds counts in equal parts on each.
type NodeStock struct {
	Name        string    `json:"name"`
	Level       NodeState `json:"level" doc:"up, draining, down: whether new work may start there"`
	State       string    `json:"state" doc:"in the system's own words"`
	Why         string    `json:"why,omitempty" doc:"an administrator's reason"`
	Partitions  []string  `json:"partitions,omitempty"`
	Reservation string    `json:"reservation,omitempty" doc:"that holds it now"`
	CPUs        int       `json:"cpus"`
	CPUsOurs    int       `json:"cpus_ours,omitempty"`
	CPUsOthers  int       `json:"cpus_others,omitempty"`
	GPUs        int       `json:"gpus,omitempty"`
	GPUsOurs    int       `json:"gpus_ours,omitempty"`
	GPUsOthers  int       `json:"gpus_others,omitempty"`
}

// Use is what a user's jobs hold and wait for in a partition.
type Use struct {
	User      string `json:"user"`
	Partition string `json:"partition"`
	Ours      bool   `json:"ours,omitempty" doc:"they were handed over by this server"`
	Running   int    `json:"running" doc:"jobs, suspended ones too"`
	Waiting   int    `json:"waiting" doc:"jobs; an array that waits counts once"`
	Nodes     int    `json:"nodes,omitempty" doc:"of running jobs"`
	CPUs      int    `json:"cpus,omitempty"`
	GPUs      int    `json:"gpus,omitempty"`
}
