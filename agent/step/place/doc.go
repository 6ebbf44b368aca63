// Package place decides which nodes, CPUs and devices of a job's allocation a step
// gets, and which rank runs where.
//
// The model. An Allocator holds the steps that run and those that wait. Create places a
// step on what the others leave: parts are chosen (choose.go), tasks spread and ranks
// dealt over them (spread.go), devices picked (devices.go). Messages and choices are
// those of Slurm's srun.
//
// Guarantees: two steps without --overlap never hold one CPU or device; a step that
// fits an empty allocation waits, one that never fits is refused; steps are placed
// first come first served among those that fit.
//
// The package is pure: no clock, no I/O, no goroutine. Its caller learns of a step's
// end and calls Release.
package place
