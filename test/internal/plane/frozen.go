package plane

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/proc"
)

// freezer is where control groups of the first version freeze processes.
const freezer = "/sys/fs/cgroup/freezer"

// CanFreeze skips a test where no process can be made unkillable: that needs root and a
// freezer of cgroup v1 (a frozen process of v2 still dies of SIGKILL).
func CanFreeze(t testing.TB) {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(freezer, &st); err != nil || st.Type != unix.CGROUP_SUPER_MAGIC || os.Geteuid() != 0 {
		t.Skip("needs root and a freezer of cgroup v1")
	}
}

// Freeze puts a process into uninterruptible sleep (state D), so that SIGKILL does not
// end it, until thaw is called or the test ends.
func (p *Plane) Freeze(pid int) (thaw func()) {
	p.T.Helper()
	dir, err := os.MkdirTemp(freezer, "cox-test-")
	p.failOn(err)
	write := func(file, text string) error { return os.WriteFile(filepath.Join(dir, file), []byte(text), 0) }
	p.T.Cleanup(func() {
		_ = write("freezer.state", "THAWED")
		p.Await("the frozen process has ended", func() bool {
			b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			for _, left := range strings.Fields(string(b)) {
				if n, err := strconv.Atoi(left); err == nil {
					_ = unix.Kill(n, unix.SIGKILL)
				}
			}
			return err != nil || len(b) == 0
		})
		_ = os.Remove(dir)
	})
	p.failOn(write("cgroup.procs", strconv.Itoa(pid)))
	p.failOn(write("freezer.state", "FROZEN"))
	p.Await("the process is frozen", func() bool {
		s, err := proc.Read(pid)
		p.failOn(err)
		return s.State == 'D'
	})
	return func() { p.T.Helper(); p.failOn(write("freezer.state", "THAWED")) }
}
