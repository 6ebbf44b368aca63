//go:build !linux

package server

import "context"

// watchGone returns what waits for the end of a process.
func watchGone(pid int) func(context.Context) error {
	return func(ctx context.Context) error { return pollGone(ctx, pid) }
}
