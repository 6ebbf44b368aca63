package api

// Shares is how accounts and users stand, as of the last tick of priorities.
type Shares struct {
	TRES   []string `json:"tres,omitempty" doc:"things whose use in time some limit bounds"`
	Shares []Share  `json:"shares" doc:"in the order of the tree: an account, its users, the accounts below it"`
}

// Share is an account, or a user in one.
type Share struct {
	Account string             `json:"account"`
	User    string             `json:"user,omitempty" doc:"empty: the account itself"`
	Parent  string             `json:"parent,omitempty" doc:"the account above; empty above the root"`
	Depth   int                `json:"depth" doc:"0: the root"`
	Raw     int64              `json:"raw_shares" doc:"as the rules say; 0: none, -1: those of the account above"`
	Norm    float64            `json:"norm_shares" doc:"of what it and its siblings have"`
	Used    float64            `json:"raw_usage" doc:"billing units × seconds, decayed"`
	OfAll   float64            `json:"norm_usage" doc:"of what everybody used"`
	Usage   float64            `json:"effective_usage" doc:"of what the account above has used"`
	Level   *float64           `json:"level,omitempty" doc:"norm_shares ∕ effective_usage: who has more goes first among siblings. Left out: infinite, because it used nothing or has the shares of the account above"`
	Factor  float64            `json:"fair_share,omitempty" doc:"of a user: between 0 and 1"`
	Minutes map[string]float64 `json:"tres_minutes,omitempty" doc:"used of each of tres, decayed, in minutes"`
	Limits  map[string]float64 `json:"group_minutes,omitempty" doc:"limits on what is used of things, in minutes (GrpTRESMins)"`
	Rest    map[string]float64 `json:"run_minutes,omitempty" doc:"what running jobs with a time limit may still use: CPUs, GiB of memory, nodes, billing units, devices, in minutes"`
	Guest   bool               `json:"guest,omitempty" doc:"a user whom the rules do not name, in an account that is open to everybody"`
}

// Priority is how the place of a waiting job in the queue comes about.
type Priority struct {
	Job       string         `json:"job" doc:"7, or 7_3 for a task of an array"`
	ID        uint64         `json:"id"`
	User      string         `json:"user,omitempty"`
	Account   string         `json:"account,omitempty" doc:"whose share counts"`
	QOS       string         `json:"qos,omitempty"`
	Partition string         `json:"partition,omitempty"`
	Priority  int64          `json:"priority" doc:"the number that orders the queue: the whole part of the sum of points, at least 1"`
	Fixed     bool           `json:"fixed,omitempty" doc:"an operator set it, or no rules weigh anything: there are no parts"`
	Tier      int32          `json:"tier,omitempty" doc:"of the partition; goes before the priority"`
	Eligible  int64          `json:"eligible,omitempty" doc:"Unix seconds since when its age counts"`
	Ageless   string         `json:"ageless,omitempty" doc:"the limit on how many waiting jobs grow older that keeps it from growing older"`
	At        int64          `json:"at,omitempty" doc:"Unix seconds of the tick as of which this is"`
	Parts     []PriorityPart `json:"parts,omitempty" doc:"in the order in which they are summed; site and nice first with each other"`
}

// PriorityPart is one factor of a priority.
type PriorityPart struct {
	Name   string  `json:"name" doc:"association, fair_share, job_size, partition, qos, tres/NAME, site, nice, age"`
	Factor float64 `json:"factor"`
	Weight float64 `json:"weight"`
	Points float64 `json:"points" doc:"factor × weight"`
}

// Priorities is the priorities of all jobs that wait and that the caller may see.
type Priorities struct {
	Jobs    []Priority         `json:"jobs" doc:"in queue order"`
	Weights map[string]float64 `json:"weights,omitempty" doc:"of the factors, by the names of parts; those that count nothing are left out"`
}
