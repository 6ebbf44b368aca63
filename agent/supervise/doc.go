// Package supervise is the process that stands between the local engine and what
// it runs: one for each attempt and node, outliving the engine.
//
// The model. One goroutine, loop, owns all state; commands (control.go), ends of
// children (spawn.go), reports of steps and the clock reach it as events. What
// happens is a fact, an attempt.Record: folded into the state, written to the
// journal, sent to whoever is connected, in this order. The engine learns of a
// supervisor's death by the end of its connection.
//
// Guarantees: nothing of the program runs before the command to go. Every process
// of the attempt on this node is a descendant of the supervisor, which is a
// subreaper, and is in its control group where there is one. "Gone" is said only
// when it has no child left and the group is empty. An exit code that cannot be
// written is kept, served, and written when that becomes possible.
//
// It decides nothing about the gang: the engine opens the barrier. The head node's
// supervisor, when its batch script has ended, tells the others to end, so that
// this does not wait for a server.
package supervise
