package api

import "time"

// Defrag says what is proposed to move so that a waiting job starts, and what moves.
type Defrag struct {
	Mode     string       `json:"mode" enum:"off,ask,automatic" doc:"as preemption.defrag of the site's rules"`
	Idle     string       `json:"idle,omitempty" doc:"the rule beside which nothing is moved whatever the mode: compat, backfill.reservations, reservations"`
	Proposal *DefragPlan  `json:"proposal,omitempty" doc:"left out: none"`
	Moving   []DefragMove `json:"moving,omitempty" doc:"jobs that are being stopped to go on elsewhere"`
}

// DefragPlan is a set of running jobs that would move so that a waiting one starts.
type DefragPlan struct {
	ID       string       `json:"id" doc:"of these moves to these places: what is approved"`
	Job      string       `json:"job,omitempty" doc:"that would start; left out where the asker may not see it"`
	User     string       `json:"user,omitempty"`
	Nodes    []string     `json:"nodes" doc:"where it would start"`
	Starts   time.Time    `json:"starts,omitzero" doc:"when it would start otherwise; left out: nobody knows"`
	Moves    []DefragMove `json:"moves"`
	Cost     int64        `json:"cost" doc:"GPU-seconds of work that is done again"`
	CoreCost int64        `json:"core_cost" doc:"CPU-seconds of work that is done again"`
}

// DefragMove is a running job that moves, or would.
type DefragMove struct {
	Job      string   `json:"job,omitempty" doc:"left out where the asker may not see it"`
	User     string   `json:"user,omitempty"`
	For      string   `json:"for,omitempty" doc:"the number of the job for which it moves"`
	From     []string `json:"from" doc:"nodes"`
	To       []string `json:"to" doc:"nodes"`
	GPUs     float64  `json:"gpus"`
	Lost     int64    `json:"lost,omitempty" doc:"seconds of its work that it does again, those to start it among them"`
	Cost     int64    `json:"cost,omitempty" doc:"the same in GPU-seconds"`
	CoreCost int64    `json:"core_cost,omitempty" doc:"the same in CPU-seconds"`
}

// ApproveDefrag asks for a proposal to be carried out.
type ApproveDefrag struct {
	ID string `json:"id" doc:"of the proposal"`
}
