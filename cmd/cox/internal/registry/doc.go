// Package registry has cox registry: login, logout and list of a user's credentials for container
// registries.
//
// The credentials stay on this machine (agent/registry), so login is refused where the server is
// another machine. The registry is asked whether the password is right before it is kept.
package registry
