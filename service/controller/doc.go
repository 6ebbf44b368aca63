// Package controller keeps services alive. One goroutine holds the document of each service, asks
// service/decide what comes next after every change of a job, an endpoint or the load, and applies it:
// the document first, then cancellations and submissions.
//
// # Guarantees
//
// Nothing is noted of what was submitted: a submission of the same part returns the same job, and a
// document that is durable says what is wanted. So a server that ends at any instruction and starts again
// goes on where it was, without a replica twice and without one forgotten.
//
// A refused submission is no error of the service: it is one of its reasons, and is tried again after a
// pause that grows to 5 minutes.
//
// It does not decide who may do what: callers name who asks, and have asked auth.
//
// Files: controller.go has the goroutine, plane.go what it needs of a control plane, service.go what
// people ask for, apply.go how a decision is carried out, observe.go what a decision depends on,
// status.go how a service is shown.
package controller
