package control

import "time"

// Stats are counters since the start and gauges of now, for metrics.
type Stats struct {
	Jobs    map[string]int // by state; pending and holding ones, and those ended that are still in memory
	Waiting map[string]int // pending jobs by the code of their first reason
	Devices map[string]int // by state: free, used, shared, foreign, down
	Nodes   map[string]int // by state

	Submitted uint64 // jobs, tasks of arrays each
	Started   uint64 // allocations made
	Ended     map[string]uint64

	Wait     Histogram // seconds from eligible to allocated
	Decision Histogram // seconds that a decision of the core took
	Append   Histogram // seconds that a write of the journal took
	Batch    Histogram // records in a write of the journal

	Calls  map[string]uint64 // to the engine, by verb
	Errors map[string]uint64 // of these, without success

	Inbox     int    // requests and reports that wait for the loop
	Seq       uint64 // newest journal record
	Projected uint64 // newest journal record that the projection reflects
	Refused   uint64 // decisions of the core that the ledger refused
}

// Histogram counts observations. Bounds ascend; Counts has one more for what is
// above the last.
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Sum    float64
	Count  uint64
}

// Stats takes the numbers of now. No disk is waited for.
func (c *Control) Stats() Stats { return Stats{Inbox: len(c.inbox)} }

// Started is when this control plane was opened.
func (c *Control) Started() time.Time { return c.opened }
