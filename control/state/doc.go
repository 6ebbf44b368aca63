// Package state is the fold of the journal: what the records of the journal make of jobs,
// allocations, nodes, pools, policies and tokens.
//
// State.Apply is the only way to change what the journal says, while a server runs and when
// it starts. Every record has a kind (KindSubmitted …) and a payload (Submitted …); both are
// a format on disk. Beside that the package keeps what follows from the journal without
// being in it: indexes, the events that the scheduling core has to hear, timers, and the
// reasons why jobs wait. State.Restore reads the projection and the journal after it;
// State.TakeUnprojected and JobRecord.ProjectRow make the projection.
//
// The same records make the same state, in one process or after a restart. Check verifies
// the invariants.
//
// One goroutine, the control loop, writes. It holds the lock of State while it does and
// reads without it; everybody else reads under the lock, which nobody holds while a disk is
// waited for. Exported fields of State, JobRecord and Attempt are for that loop and for
// readers under the lock.
//
// The package has no clock and starts no goroutine that outlives a call. It calls no engine,
// writes no journal and decides nothing: the loop (package control) does.
package state
