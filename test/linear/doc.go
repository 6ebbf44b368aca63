// Package linear checks that the control plane is linearizable for each job: what
// several clients were answered, and what they read, can be put into one order that
// keeps to time and to a sequential model, whatever fails meanwhile.
//
// A history is what three clients asked of the production code of package control
// (submissions, cancels, holds, releases, requeues, updates, questions for a job and
// for all) over a fake engine and a store in memory, in a bubble of testing/synctest,
// so that waiting costs nothing. Meanwhile the server is killed before or after a
// write of the journal, or followed by another; answers of the engine, of the disk and
// of the server are lost; launches arrive late; the disk is full, slow, or fails after
// it has written; the clock jumps. Some requests have an unknown outcome then: the
// order may have them with their effect or without it, but no later than the start of
// the next server. porcupine looks for the order, job by job; model_test.go is what it
// must keep to. server_test.go does the same with a real server under SIGKILL.
//
// A seed (COX_LINEAR_SEED) decides what clients ask and what fails. It does not decide
// how goroutines interleave: the same seed is another history of the same kind.
//
// Questions are answered by the server that leads: one that was followed may show what
// was (package control says for how long), so what it shows is not part of a history.
// Promises that concern several jobs at once are not judged here: see test/simulate.
package linear
