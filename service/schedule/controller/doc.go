// Package controller submits the runs of schedules. One goroutine holds the document of each schedule,
// asks service/schedule/decide what comes next when a time comes or a job changes, and applies it: the
// document first, then cancellations and submissions.
//
// # Guarantees
//
// A run is in the document before its job is submitted, and a submission of the same part returns the
// same job. So a server that ends at any instruction and starts again submits each run once.
//
// A refused submission is a reason of its run: it is tried again, after a pause that grows to 5 minutes,
// until the next time comes, and never stops that one.
//
// It does not decide who may do what: callers name who asks, and have asked auth.
//
// Files: controller.go has the goroutine and what people ask for, apply.go how a decision is carried out,
// plane.go what it needs of a control plane, status.go how a schedule is shown.
package controller
