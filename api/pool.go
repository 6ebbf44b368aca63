package api

import (
	"encoding/json"
	"time"
)

// The states of a pool.
const (
	PoolUp      = "up"      // its engine answers
	PoolOpening = "opening" // its engine has not answered yet
	PoolSilent  = "silent"  // its engine does not answer; what it runs goes on
	PoolBroken  = "broken"  // it could not be opened
	PoolGone    = "gone"    // it is not configured any more, and something is held in it
)

// Pool is a set of nodes and what its engine can do.
type Pool struct {
	Name        string          `json:"name"`
	Engine      string          `json:"engine" doc:"its kind: local, slurm, …"`
	Version     string          `json:"version,omitempty" doc:"of what the engine drives"`
	Gang        string          `json:"gang" doc:"strict, approximate, none; empty: its engine has not answered yet"`
	Abilities   []string        `json:"abilities,omitempty" doc:"placed, delegated, suspend, elastic, isolates, proves"`
	Notes       []string        `json:"notes,omitempty"`
	Default     bool            `json:"default,omitempty" doc:"jobs that name no pool go there"`
	State       string          `json:"state,omitempty" doc:"up, opening, silent, broken, gone"`
	Why         string          `json:"why,omitempty" doc:"of a state other than up"`
	Heard       time.Time       `json:"heard,omitzero" doc:"when its engine last answered"`
	Nodes       int             `json:"nodes,omitempty"`
	Devices     int             `json:"devices,omitempty"`
	DevicesUsed int             `json:"devices_used,omitempty" doc:"of which a job holds all or a part; in a list of pools"`
	Jobs        int             `json:"jobs,omitempty" doc:"that hold something there; in a list of pools"`
	Added       time.Time       `json:"added,omitzero" doc:"left out: it is of the server's configuration"`
	By          string          `json:"by,omitempty" doc:"who added it"`
	Settings    json.RawMessage `json:"settings,omitempty" doc:"for administrators, in a list of pools; no secret is in them"`
}

// Pools is the answer to a list of pools.
type Pools struct {
	Pools   []Pool   `json:"pools"`
	Engines []string `json:"engines,omitempty" doc:"kinds of engine that pools can be added with"`
}

// NewPool asks for a pool.
type NewPool struct {
	Name     string          `json:"name" doc:"a-z, 0-9, - and ."`
	Engine   string          `json:"engine" doc:"its kind"`
	Settings json.RawMessage `json:"settings,omitempty" doc:"an object with what that kind needs to know; no secrets, only where they are"`
	Check    bool            `json:"check,omitempty" doc:"only look at it"`
	Force    bool            `json:"force,omitempty" doc:"add it although something is missing"`
}

// PoolDone says what a look at a pool has found.
type PoolDone struct {
	Name     string    `json:"name"`
	Engine   string    `json:"engine"`
	Added    bool      `json:"added,omitempty"`
	Nodes    int       `json:"nodes,omitempty"`
	Missing  int       `json:"missing,omitempty" doc:"findings that keep work from running"`
	Findings []Finding `json:"findings"`
}

// Finding is one thing that was looked at.
type Finding struct {
	What  string `json:"what"`
	State string `json:"state" enum:"found,warning,missing"`
	Text  string `json:"text"`
	Mend  string `json:"mend,omitempty" doc:"the command that would mend it"`
}
