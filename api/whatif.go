package api

import "time"

// WhatIf asks what would be if something were otherwise. Its parts can be combined.
type WhatIf struct {
	AddNodes int              `json:"add_nodes,omitempty" doc:"so many nodes more"`
	Like     string           `json:"like,omitempty" doc:"like this node; empty: like the first of the pool"`
	Pool     string           `json:"pool,omitempty"`
	Drain    string           `json:"drain,omitempty" doc:"without these nodes: a host list, or a domain of the topology"`
	Quotas   map[string]int64 `json:"quotas,omitempty" doc:"accounts that may hold so many devices; account/flavor: its nominal amount of that flavour"`
	Policy   string           `json:"policy,omitempty" doc:"this document of rules instead of the one in force"`
	File     string           `json:"file,omitempty" doc:"name of the document, for messages"`
	Submit   []Submit         `json:"submit,omitempty" maxItems:"64" doc:"jobs that are not there yet"`
}

// WhatIfDone says how things would go on, as they are and with the change.
type WhatIfDone struct {
	Now       time.Time `json:"now"`
	Before    Figures   `json:"before"`
	After     Figures   `json:"after"`
	Sooner    int       `json:"sooner" doc:"waiting jobs that start sooner, by a second at least"`
	Later     int       `json:"later"`
	Never     int       `json:"never,omitempty" doc:"waiting jobs that no longer start within the bounds"`
	Moved     []Moved   `json:"moved" doc:"the first 50 of them, those that gain most first"`
	Submitted []Tried   `json:"submitted,omitempty"`
	Added     []string  `json:"added,omitempty"`
	Drained   []string  `json:"drained,omitempty"`

	Handovers []HandoverMove `json:"handovers,omitempty" doc:"machines that the rules which are tried would hand over on demand"`
	Pools     []HandoverPool `json:"pools,omitempty" doc:"the pools of handover: of these rules"`
}

// HandoverMove is a machine that would be handed over on demand.
type HandoverMove struct {
	Machine string  `json:"machine"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	Takes   float64 `json:"takes_s" doc:"seconds until its new pool can use it"`
	Reason  string  `json:"reason"`
}

// HandoverPool is how a pool stands before machines are handed over.
type HandoverPool struct {
	Pool     string `json:"pool"`
	Machines int    `json:"machines"`
	Idle     int    `json:"idle" doc:"machines with nothing on them"`
	Lacks    int    `json:"lacks,omitempty" doc:"GPUs of waiting work for which it has no room; CPUs where no machine has GPUs"`
	Why      string `json:"why,omitempty" doc:"why it lacks some and gets nothing"`
}

// Figures sum up how the waiting jobs fare.
type Figures struct {
	Jobs     int     `json:"jobs" doc:"that wait and are not held"`
	Started  int     `json:"started" doc:"of them, within the bounds of the work"`
	Held     int     `json:"held,omitempty" doc:"held, or waiting for other jobs: left as they are"`
	Never    int     `json:"never,omitempty" doc:"that no node takes"`
	Wait     Waits   `json:"wait"`
	Use      float64 `json:"use" doc:"share of the devices in use, from now over span"`
	Fair     float64 `json:"fair" doc:"Jain's index over accounts of what of their demand started, over span"`
	Sizes    []Part  `json:"sizes,omitempty"`
	Accounts []Part  `json:"accounts,omitempty"`
	Taken    int     `json:"taken,omitempty" doc:"times that a running job is ended so that another one can start"`
	Bounded  bool    `json:"bounded,omitempty" doc:"the work ran out before everything had started"`
	Span     float64 `json:"span_seconds"`
}

// Waits are from submission to start, in seconds.
type Waits struct {
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	Mean   float64 `json:"mean"`
}

// Part is a part of the waiting jobs.
type Part struct {
	Name    string `json:"name"`
	Jobs    int    `json:"jobs"`
	Started int    `json:"started"`
	Wait    Waits  `json:"wait"`
}

// Moved is a job that starts at another time. A time that is missing: not within the
// bounds.
type Moved struct {
	Job    string    `json:"job"`
	Name   string    `json:"name,omitempty"`
	User   string    `json:"user"`
	Before time.Time `json:"before,omitzero"`
	After  time.Time `json:"after,omitzero"`
}

// Tried is a job that was asked about.
type Tried struct {
	Name  string    `json:"name"`
	Start time.Time `json:"start,omitzero" doc:"of an array: of its first task; left out: not within the bounds of the work"`
	Tasks int       `json:"tasks,omitempty" doc:"of an array"`
	Began int       `json:"began,omitempty" doc:"tasks of an array that start within the bounds"`
	Last  time.Time `json:"last,omitzero" doc:"of an array: when the last of these starts"`
}
