package main

import "syscall"

// umask is the process's mask of file modes. It can only be read by setting it.
func umask() uint32 {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return uint32(mask)
}
