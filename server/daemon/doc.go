// Package daemon puts the parts of a server together and takes them down again:
// configuration, state directory, embedded engine, control loop, HTTP.
//
// One process serves a state directory; a second one is refused. Everything that
// was accepted is durable, so a server that is killed loses nothing: the work of
// the embedded engine goes on without it, and the next server takes it up.
package daemon
