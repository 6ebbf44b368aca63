// Package endpoints knows which replicas of services serve, and where. A Hub joins three views: what
// engines say of the addresses of attempts (engine.EndpointWatcher), what control knows of the jobs
// that are replicas (Replica), and how gateways find a service (SetService). It gives gateways their
// routes, sums the load that gateways post, and says when nothing is in flight any more at a replica
// that is being ended.
//
// A replica is ready only if its engine says so, its job runs that very attempt, and no record asks for
// the job's end. Nothing here is journaled: after a restart the engines and control say it all again,
// and gateways get no routes until they have (Complete).
//
// A Hub is safe for concurrent use. Nothing is called while its lock is held.
package endpoints
