package sqlite_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// A process that a killed cox was about to start still has its lock, until it has
// become its program: the next cox waits for that.
func TestLockOfADeadOwner(t *testing.T) {
	dir := t.TempDir()
	dead := exec.Command("true")
	must(t, dead.Run())
	f, err := os.Create(filepath.Join(dir, "lock"))
	must(t, err)
	_, err = fmt.Fprintf(f, "%d cox up\n", dead.Process.Pid)
	must(t, err)
	must(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	locked := make(chan error, 1)
	go func() {
		unlock, err := sqlite.Lock(dir, "cox run")
		if err == nil {
			unlock()
		}
		locked <- err
	}()
	select {
	case err := <-locked:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond): // it waits, or has not asked yet
	}
	must(t, f.Close())
	must(t, <-locked)
}
