package controller

import (
	"context"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/service/handover/decide"
)

// Plane is what hand-overs need of a control plane.
type Plane interface {
	// Machines lists the machines that have a record, by name. No engine is asked.
	Machines(ctx context.Context) ([]Machine, error)
	// MoveMachine makes the next record of a machine durable; fault.Conflict if it does not follow the
	// present one.
	MoveMachine(ctx context.Context, by job.Actor, next fleet.MachineOwner) error
	// Pools lists the names of the pools that are configured.
	Pools() []string
	// Engine is the engine of a pool; nil: there is none.
	Engine(pool string) engine.Engine
	// LookAt has a pool's engine asked soon for its nodes: a call of the hand-over has changed them.
	LookAt(ctx context.Context, pool string) error
	// Requeue ends running jobs and lets them wait for a new attempt. An error for each, nil where it is
	// asked for.
	Requeue(ctx context.Context, by job.Actor, ids []job.ID) ([]error, error)
	// Next waits for a change of jobs after a number, and returns the number to go on from.
	Next(ctx context.Context, after uint64) (last uint64, err error)
}

// Machine is a machine as the control plane knows it.
type Machine struct {
	Owner fleet.MachineOwner
	Nodes []MachineNode // of all pools that report the machine, by pool and name
	Work  []decide.Work // what the ledger holds there
	Pools []string      // that are configured
	// Unheard are the configured pools that have not said yet which nodes they have.
	Unheard []string
}

// MachineNode is a node on a machine.
type MachineNode struct {
	fleet.NodeKey
	Delegated bool // the pool's own scheduler chooses nodes
	State     fleet.NodeState
	Why       string   // of a state other than up
	Fence     uint64   // epoch of our fence there, as the engine last said; 0: none
	Unfit     string   // which of our checks keeps new work off the whole node; empty: none does
	Path      []string // topology from the top down
	Machines  int      // on so many machines is the node
}
