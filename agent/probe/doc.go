// Package probe sees whether a replica of a service is well (job.Probe): it gets a page, connects to a
// port or runs a command, counts what comes of it, and says when that changes something.
//
// The model is Kubernetes'. Until the startup probe has passed once no other probe runs. A probe fails
// after so many looks in a row that failed, and passes after so many that passed. Without a readiness
// probe a replica is ready when its first port takes connections.
//
// A GET is a few lines of text on a connection: net/http's client would cost the supervisor of every
// job more than all else that it has.
package probe
