package sqlite

import "syscall"

// lowerPriority gives the calling thread the least share of the processor. Where that is refused
// it goes on as it is.
func lowerPriority() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19) }
