// Package admin has the routes of the API about the machine room and its rules: nodes, pools,
// moves of defragmentation, policy, quotas, reservations, licences, access tokens, audit, backup,
// the scheduling core's snapshot, metrics, and what the server says about itself.
//
// Guarantees. A change is answered when it is durable, and with what it does at once to the jobs
// that wait and run. A caller learns nothing here of jobs that he may not see: they are counted
// and not named.
//
// It has no state of its own but when it began. Jobs have their routes in package jobs.
package admin
