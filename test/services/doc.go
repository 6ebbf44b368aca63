// Package services tests services as users see them: a real server with its gateway, real replicas, and
// clients that ask all the while. It has tests only.
package services
