// Package pools has the pools of a control plane: which there are, the engine of each, and
// what that engine has said of itself and its nodes.
//
// A Set has a Member for each pool. A Member has the calls to its engine (package dispatch),
// the time of its last answers and heartbeats, and, where the engine hands work to a
// scheduler of its own, the nodes that stand behind the one node that the core sees. A pool
// that the journal names and that cannot be opened, or is not configured any more, is a
// Member too: what the ledger holds in it stays held, and its engine answers with an error.
//
// Set is safe for concurrent use. Of a Member some fields are guarded by the lock of the
// state and others are for the control loop alone, as their comments say.
//
// The package watches no engine and decides nothing about jobs: the loop (package control)
// does, with what it finds here.
package pools
