package server

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// watchGone takes hold of a process; what it returns waits for its end, also if
// nobody collects it.
func watchGone(pid int) func(context.Context) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil { // an old kernel, or it has ended
		return func(ctx context.Context) error { return pollGone(ctx, pid) }
	}
	return func(ctx context.Context) error {
		defer unix.Close(fd)
		until := time.Now().Add(stopTime)
		for ctx.Err() == nil && time.Now().Before(until) {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
			switch {
			case n > 0:
				return nil
			case err != nil && !errors.Is(err, unix.EINTR):
				return err
			}
		}
		return notEndedError(pid)
	}
}
