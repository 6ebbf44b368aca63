// Package jobs has the commands for jobs that the server already has: list and
// explain them (queue, show, why, priority, watch, history, top), wait for them and
// reach into them (wait, exec, logs), and change them (cancel, hold, update and the
// like).
//
// Commands that take a selection (-u, --state, --node …) share its flags. They print
// what the server says and decide nothing.
package jobs
