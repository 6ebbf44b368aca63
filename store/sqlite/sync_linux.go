package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// fdatasync makes the bytes of a file durable, and its size.
func fdatasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}
