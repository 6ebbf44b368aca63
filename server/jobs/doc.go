// Package jobs has the routes of the API about jobs: submit, upload, list, show, why, change,
// wait, watch, logs, exec, history, advice, priorities and what-if.
//
// A text becomes a job in control/intake; this package hands it over.
//
// It has no state that must survive: a watch is resumed by a number of the journal. Service holds
// a window of recent events that all watchers share.
//
// Guarantees. A submission or change is answered when it is durable. A list page that is asked
// for with a cursor continues where the previous page ended, whatever came and went meanwhile. A
// watcher gets each event once and in order, or is told that some are gone; a watcher that does
// not read is cut off and does not delay the others. Files of users are never opened with the
// server's rights. A caller learns nothing of jobs that they may not see.
//
// It does not schedule, and knows of an engine only the small interfaces of service.go and
// output.go. Callers are authenticated and limited in package transport.
package jobs
