// Package load runs the server through a day of mixed work in about two minutes and
// looks at what must not grow.
//
// The server is a process of its own: control, core, ledger, dispatch, SQLite and the
// HTTP API as they are in production, over a socket and TCP, with the fake engine and a
// clock that runs 720 times as fast (clock_test.go). The trace is drawn from a seed:
// three shifts of 8 h, each alike (trace_test.go), of which make test runs a third: COX_LONG=1
// runs all of it. At the end of a shift nothing is
// left to run, so what is held then is held for good: heap after a collection,
// goroutines and descriptors of the third shift are compared with those of the second;
// resident memory and the state directory by the largest value within a shift.
// History and journal are kept for hours, so that purging is part of the day.
//
// Every event is expected once by a watcher that stays, by one that is cut off again
// and again and resumes (within the window, and so late that the journal has to be
// read), and by those who watch one user. Every accepted job ends once.
//
// Time in the server goes on only as far as the clients have come, so a slow machine
// takes longer and sees the same day. Latencies are printed, nothing is asserted of
// them. It says nothing of processes, which the fake engine has none of.
package load
