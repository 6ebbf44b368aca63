// Package server is the HTTP API over a control plane: it says who asks, whether he
// may, reads what he sent, and writes what control knows.
//
// It has no state that must survive: identities come with every connection or
// request, and a watch is resumed by a number of the journal. What it holds is a
// window of recent events that all watchers share, and counters.
//
// Guarantees. Every route names its verb in one table (routes), and none is served
// without asking auth. No request is answered before what it changed is durable.
// A list page that is asked for with a cursor goes on where the one before ended,
// whatever came and went meanwhile. A watcher gets each event once and in order, or
// is told that some are gone; one that does not read is cut off and hurts nobody.
// Files of users are never opened with the server's rights.
//
// It does not schedule, does not know what an engine is beyond the small interfaces
// of config.go, and terminates no TLS: TCP is for loopback addresses.
package server
