//go:build linux && (amd64 || arm64)

// Package atstart has the limit of open files with which this process was started. Go raises it
// when package syscall is initialized and does not tell the earlier value. Go initializes packages
// in the order of their import paths, as soon as all that they import is initialized. So this
// package must import nothing, and asks the kernel in assembly.
package atstart

// OpenFiles is the soft limit; 0: not known.
var OpenFiles = readOpenFiles()

func readOpenFiles() uint64 {
	var limit [2]uint64 // soft, hard
	if prlimitOpenFiles(&limit) != 0 {
		return 0
	}
	return limit[0]
}

// prlimitOpenFiles reads the soft and the hard limit. The result is 0, or a negated errno.
//
//go:noescape
func prlimitOpenFiles(limit *[2]uint64) int64
