// Package query answers questions about a control plane: jobs, why they wait and when they
// are expected to start, nodes and pools, accounts and policies, events, and what would happen
// if something changed.
//
// A Reader reads the state (package state), the scheduling core and the pools as the control
// loop leaves them, under the lock of the state. It asks neither the loop nor an engine, and
// waits for no disk but where its methods say that they read the store: jobs that have left
// memory, old events and documents. An answer made of several reads is no picture of one
// instant: LastEvent, taken before, says which events to read after it.
//
// It changes nothing, but for the forecasts that it keeps: when each waiting job will start,
// estimated by running a copy of the core ahead, one request at a time.
//
// It does not decide who may see what.
package query
