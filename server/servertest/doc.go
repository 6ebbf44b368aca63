// Package servertest has what tests of the HTTP API share: a fake control plane, engines, and a
// server on a real socket with its clients.
//
// Plane keeps jobs in a list, numbers its events as the journal does, and starts, ends or forgets
// a job when the test says so. It schedules nothing and checks no rule of the control plane;
// tests of those use a control.Control.
//
// Listen runs any server of package transport, so that the packages whose routes are tested
// import this one and not the other way round.
package servertest
