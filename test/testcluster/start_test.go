package testcluster

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStart: what was started lives on when the thread of who asked for it ends. Seen to fail with a
// start on that thread.
func TestStart(t *testing.T) {
	c := exec.Command("cat")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	tid, started := make(chan int), make(chan error)
	var begin func()
	begin = func() {
		runtime.LockOSThread()              // and never unlocked: the thread ends with the goroutine
		if unix.Gettid() == unix.Getpid() { // but for the first one
			go begin()
			<-t.Context().Done()
			return
		}
		started <- Start(c)
		tid <- unix.Gettid()
	}
	go begin()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	thread := <-tid
	if err := Await(t.Context(), "the thread has ended", func() bool { return unix.Tgkill(unix.Getpid(), thread, 0) != nil }); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil { // cat ends by itself when nothing comes any more
		t.Error(err)
	}
}
