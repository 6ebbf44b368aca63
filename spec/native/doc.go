// Package native reads and writes Coxswain's own form of a job, in YAML:
//
//	name: train
//	gpus: 2
//	time: 4h
//	command: torchrun --nproc-per-node 2 train.py
//
// It says whatever a job.Spec can hold, in words that a user would guess, flat for
// the common case; groups: is for jobs of several unlike parts. One table of fields
// (fields.go, groups.go) is what Parse obeys, what Schema and the documentation are
// made from, and what an unknown name is compared with.
//
// It is strict: an unknown field, a field given twice, a number where text is
// wanted, a size without a unit, a value out of range, are errors with line, column
// and what would be right; all of a file's errors come together. Numbers and true or
// false stand without quotes; any plain value is taken as text where text is wanted,
// so that name: 007 is "007". Nothing is expanded: "$HOME" stays "$HOME".
//
// Render writes a job back; Parse(Render(s)) is s, and what cannot be said becomes a
// warning. The text may come from anybody: package spec/yaml bounds what is read,
// and no other resource is touched. The package does no I/O.
package native
