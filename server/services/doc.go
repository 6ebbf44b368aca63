// Package services has the routes of services: what runs, scale, rollout, stop. A service is made, and
// gets its next revision, by a submission (server/jobs).
package services
