package api

import "time"

// MachineMove hands machines over from one pool to another: those of Nodes, or Count of them, or those of Rack.
type MachineMove struct {
	Nodes    []string `json:"nodes,omitempty" doc:"names or host lists of nodes (POOL/NODE where several pools have the name), or of machines"`
	Count    int      `json:"count,omitempty" minimum:"0" doc:"so many machines: those that are cheapest to free"`
	Rack     string   `json:"rack,omitempty" doc:"machines below this element of the topology: all of them, or count"`
	From     string   `json:"from,omitempty" doc:"the pool that owns them; empty: any other"`
	To       string   `json:"to" doc:"the pool that gets them"`
	Now      bool     `json:"now,omitempty" doc:"requeue at once what runs there and may be requeued; else its end is waited for"`
	Deadline int64    `json:"deadline,omitempty" minimum:"0" doc:"seconds after which a hand-over is walked back that the new pool has not been admitted by; 0: a day"`
	Reason   string   `json:"reason,omitempty"`
	DryRun   bool     `json:"dry_run,omitempty" doc:"only say which machines, and why these"`
	Force    bool     `json:"force,omitempty" doc:"take machines at once and without a proof that their pool reports no node on any more: the caller has seen that nothing of that pool runs there; it needs nodes"`
}

// MachineFence has the nodes closed, or opened again, that other pools than the owner have on machines: before their
// first hand-over.
type MachineFence struct {
	Nodes  []string `json:"nodes" doc:"names or host lists of machines, or of nodes on them (POOL/NODE where several pools have the name)"`
	Remove bool     `json:"remove,omitempty" doc:"open the nodes again"`
	Reason string   `json:"reason,omitempty" doc:"for people; needed unless remove"`
}

// FencedMachines says what becomes of each machine. Some may be refused while others are closed.
type FencedMachines struct {
	Machines []FencedMachine `json:"machines"`
}

// FencedMachine is a machine on which the nodes of other pools are closed or opened, or why they are not.
type FencedMachine struct {
	Machine string   `json:"machine"`
	Owner   string   `json:"owner,omitempty"`
	Nodes   []string `json:"nodes" doc:"of other pools: POOL/NODE"`
	Epoch   uint64   `json:"epoch,omitempty" doc:"of the fence"`
	Already bool     `json:"already,omitempty" doc:"it was asked for before, and nothing changed"`
	Error   *Error   `json:"error,omitempty" doc:"why nothing is closed or opened"`
}

// MachineAbort walks hand-overs back.
type MachineAbort struct {
	Machines []string `json:"machines" doc:"names or host lists of machines, or of nodes on them"`
}

// MovedMachines says what becomes of each machine. Each is handed over by itself: some may be refused while
// others move.
type MovedMachines struct {
	Machines []MovedMachine `json:"machines"`
}

// MovedMachine is a machine that is handed over, or why it is not.
type MovedMachine struct {
	Machine string    `json:"machine"`
	Node    string    `json:"node,omitempty" doc:"as its pool calls it"`
	From    string    `json:"from"`
	To      string    `json:"to,omitempty"`
	Epoch   uint64    `json:"epoch,omitempty" doc:"of the hand-over"`
	Why     string    `json:"why,omitempty" doc:"it was chosen, or what has to end before it is free"`
	FreeBy  time.Time `json:"free_by,omitzero" doc:"what runs there has ended by then; none: it is idle, or nobody knows"`
	Error   *Error    `json:"error,omitempty" doc:"why it is not handed over, or not walked back"`
}
