//go:build !linux

package sqlite

import "os"

// fdatasync makes the bytes of a file durable, and its size.
func fdatasync(f *os.File) error { return f.Sync() }
