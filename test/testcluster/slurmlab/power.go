package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// PowerOff ends all that runs on a node at once, slurmd and jobs, as when the machine loses its
// power. What is on its disks stays.
func (l *Lab) PowerOff(t testing.TB, node string) {
	t.Helper()
	d := l.daemonByName(t, "slurmd."+node)
	host, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/uts", d.pid)) // each node has a name of its own, see onHost
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(testcluster.Patience); ; {
		found, err := filepath.Glob("/proc/[0-9]*/ns/uts")
		if err != nil {
			t.Fatal(err)
		}
		found = slices.DeleteFunc(found, func(name string) bool {
			on, err := os.Readlink(name)
			return err != nil || on != host
		})
		for _, name := range found {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(name)))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}
		if len(found) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %q do not end", node, found)
		}
		time.Sleep(5 * time.Millisecond)
	}
	d.awaitExit()
}

// PowerOn begins a node's slurmd, which says that the machine has just booted.
func (l *Lab) PowerOn(t testing.TB, node string) {
	t.Helper()
	d := l.daemonByName(t, "slurmd."+node)
	words := d.words
	d.words = append(slices.Clone(words), "-b")
	l.Begin(t, d.name)
	d.words = words
}
