package lab

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// FreezeNode stops all that is on a node, its pods too, as a machine that hangs. ThawNode
// lets it go on.
func (l *Lab) FreezeNode(t testing.TB, name string) {
	t.Helper()
	n := l.nodeByName(t, name)
	had := map[int]bool{}
	for {
		all, err := l.nodeProcesses(n)
		if err != nil {
			t.Fatal(err)
		}
		fresh := false
		for _, pid := range all {
			if !had[pid] { // one that was begun meanwhile
				had[pid], fresh = true, true
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		if !fresh {
			return
		}
	}
}

// ThawNode is FreezeNode's opposite.
func (l *Lab) ThawNode(t testing.TB, name string) {
	t.Helper()
	n := l.nodeByName(t, name)
	all, err := l.nodeProcesses(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	_ = n.cmd.Process.Signal(syscall.SIGCONT) // who waits for the node's first process stops with it
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.daemons {
		if d.node == n {
			_ = d.cmd.Process.Signal(syscall.SIGCONT)
		}
	}
}

// nodeProcesses are the processes of a node, by its control group.
func (l *Lab) nodeProcesses(n *node) (pids []int, err error) {
	err = filepath.WalkDir(filepath.Join("/sys/fs/cgroup/pids", groupOf(labSuffix(l.Dir)), n.name), func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.Name() != "cgroup.procs" {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil //nolint:nilerr // its group has just ended
		}
		for _, f := range strings.Fields(string(b)) {
			pid, err := strconv.Atoi(f)
			if err != nil {
				return err
			}
			pids = append(pids, pid)
		}
		return nil
	})
	return pids, err
}
