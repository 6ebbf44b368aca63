// Package server is the HTTP API over a control plane. It has the routes about jobs: submit,
// list, show, why, change, watch, logs, exec, history, what-if. It also puts the API together:
//
//	server ──► admin      the routes about the machine room and its rules
//	   └─────► transport  HTTP below the routes: listening, identity, bounds, errors, the document
//
// A text becomes a job in control/intake; this package hands it over.
//
// It has no state that must survive: a watch is resumed by a number of the journal. What it
// holds is a window of recent events that all watchers share.
//
// Guarantees. No request is answered before what it changed is durable. A list page that is
// asked for with a cursor goes on where the one before ended, whatever came and went meanwhile.
// A watcher gets each event once and in order, or is told that some are gone; one that does not
// read is cut off and hurts nobody. Files of users are never opened with the server's rights.
//
// It does not schedule, and does not know what an engine is beyond the small interfaces of
// server.go and output.go.
package server
