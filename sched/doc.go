// Package sched is the core: a deterministic function from (state, event) to
// decisions. It orders jobs, admits gangs whole or not at all, places them, keeps
// promises to those before others, and gives every wait its reasons.
//
// There is no goroutine, clock, I/O, logger or random source here, and no map
// order reaches a decision: the same events give the same decisions, to the byte.
// Time is an input. The caller (control) verifies a decision against the ledger
// and journals it before it becomes true; the core assumes that it will, and is
// told with Released if it did not.
//
// Where what is decided (one rule, one file):
//
//	pass.go            one look at the queue, as it reads
//	line.go queue.go   lines of jobs that are alike, and why they rest
//	terms.go gate.go   what the site's rules say of a line, and what bars it
//	order.go ranks.go  whose turn it is: multifactor priority, shown and kept (model/account/priority)
//	accrual.go         how many may grow older at once
//	usage.go           what jobs have used, decayed, and Fair Tree (model/account/fair)
//	limits.go threshold.go      limits, licences, thresholds of usage (sched/limit)
//	licenses.go        licences of which one will do
//	quotas.go stake.go turn.go holdings.go   quotas, whose turn it is (sched/quota)
//	flavor.go          which flavours, how many tasks: fall-over, admission in part
//	reclaim.go later.go         claiming back, and what is held once those who go have gone
//	plan.go outlook.go the head's reservation, counted in nodes
//	named.go slot.go ahead.go   reservations of more jobs, by name (sched/plan)
//	prospect.go beside.go       what is remembered of them, so that a step costs what changes
//	advance.go reserve.go       reservations in advance, and what one would meet
//	wishes.go          what is wished for and given up after a time
//	foresight.go       what is learned of what arrives, for where a job of one node goes (sched/share)
//	shorter.go         --time-min
//	preempt.go standing.go      who takes whose place
//	search.go open.go           … which ones have to go, and where (sched/victim)
//	parked.go slice.go          who is suspended, and who takes turns
//	elastic.go recall.go        who grows on what nobody waits for, and gives it back
//	moves.go mover.go home.go   who moves so that the head fits (sched/defrag)
//	compat.go          as slurmctld would
//	nodes.go           what is held and foretold of each node (sched/index)
//	reasons.go holders.go estimate.go       why a job waits, for whom, until when
//	would.go           what would start it
//	alarm.go           what is due by time alone
//	snapshot.go claims.go check.go        the whole state as data, the claims in it; its invariants
//
// Where a gang goes on what is free is decided in sched/place, without time or order.
package sched
