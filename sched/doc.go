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
// Jobs that are alike to the core (one shape, time limit and policy) are a job class.
// A scheduling cycle looks at the first job of each class that is awake, in queue
// order. Core groups its state by policy: the struct of each is in that policy's file.
//
// Each rule has one file:
//
//	cycle.go                       one scheduling cycle over the queue
//	job_class.go queue.go          job classes, what they wait for, and heaps of them
//	gate.go                        what bars a class, whatever is free
//	effective_policy.go            the policy of the site as it applies to a class
//	multifactor.go                 multifactor priority (model/account/priority)
//	multifactor_report.go          priorities and shares as shown and saved
//	accrue_limits.go               how many jobs may gain age at once
//	usage.go                       decayed usage and Fair Tree (model/account/fair)
//	usage_threshold.go             UsageThreshold of a QOS
//	limits.go                      limits and licences (sched/limit)
//	licenses.go                    alternatives among licences
//	quotas.go                      what runs, charged to quotas (sched/quota)
//	quota_demand.go                what waiting jobs ask of a quota
//	quota_usage.go                 quotas as shown
//	quota_reclaim.go               preemption by quota
//	queue_order.go                 which queue of a quota tree goes next
//	flavor.go                      flavours, fall-over, partial admission
//	pending_release.go             quota usage once preempted jobs have gone
//	head_reservation.go            EASY: the reservation of the head
//	availability_profile.go        when each node can take its part of a gang
//	conservative_backfill.go       reservations of more jobs, node by node (sched/plan)
//	planned_start.go               the planned start of one job
//	earliest_start.go              the earliest start beside all that is planned
//	plan_cache.go plan_wakeups.go  what is cached, so that a step costs what changed
//	advance_reservation.go         reservations in advance
//	reservation_check.go           what a new reservation would meet
//	soft_constraints.go            constraints that a job gives up after a time
//	arrival_forecast.go            what is learned of arrivals, to place single nodes (sched/share)
//	time_min.go                    --time-min
//	preempt.go                     preemption and nominated jobs
//	preemption_order.go            who may preempt whom
//	victim_search.go               which jobs have to go (sched/victim)
//	victim_search_reserved.go      the same beside reservations and planned starts
//	suspended.go time_slice.go     preemption by suspension, and time slicing
//	elastic.go elastic_shrink.go   elastic jobs grow, and give back
//	defrag.go defrag_search.go     running jobs move so that the head fits (sched/defrag)
//	migration_target.go            places kept for jobs that move
//	slurm_compat.go                cycles as slurmctld would make them
//	nodes.go                       what is held on each node, now and later (sched/index)
//	reasons.go blockers.go         why a job waits, and for which jobs
//	estimate.go                    when a job would start
//	dry_run.go                     what would start it at once
//	timers.go                      what is due by time alone
//	snapshot.go claims.go          the whole state as data, and the claims in it
//	check.go                       invariants of the state
//
// Placement of a gang on what is free, without time or order, is in sched/place.
package sched
