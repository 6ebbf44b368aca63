package testcluster

import (
	"os/exec"
	"runtime"
	"sync"
)

// starts runs functions on one thread that never ends.
var starts = sync.OnceValue(func() chan<- func() {
	all := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range all {
			f()
		}
	}()
	return all
})

// Start is c.Start for a process that is to die with this one (Pdeathsig). To the kernel its
// parent is the thread that began it, and threads of Go end: it would die with one of those.
func Start(c *exec.Cmd) error {
	done := make(chan error)
	starts() <- func() { done <- c.Start() }
	return <-done
}
