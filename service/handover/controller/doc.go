// Package controller hands machines over from one pool to another. One goroutine looks at the records of
// machines, asks service/handover/decide what comes next of each, and has it done: a record is written, an
// engine is called, jobs are requeued. Each of these has a goroutine of its own, one at a time for a machine,
// with a time-out; no loop of the control plane waits for an engine.
//
// # Guarantees
//
// What was done is in the journal, as the step of the machine's record; what engines answered is in memory
// alone. So a server that ends at any instruction and starts again asks engines anew, and goes on with the
// same step. Each call names the epoch of the hand-over, by which an engine refuses one that comes too late.
//
// It does not decide who may do what: callers name who asks, and have asked auth.
//
// Files: controller.go has the goroutine, apply.go how a decision is carried out, move.go what people ask
// for, choose.go which machines are cheapest to free, plane.go what it needs of a control plane.
package controller
