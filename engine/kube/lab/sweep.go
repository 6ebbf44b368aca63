package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A test that is killed leaves no process of its labs behind, but their folders and empty
// control groups. Each folder has a file that is locked as long as its test lives: the next
// lab removes those of the dead.

// prefix begins the name of a lab's folder, alive is the name of that file, and settled how
// old one is that its lab has surely locked.
const (
	prefix  = "cox-kube-"
	alive   = "alive"
	settled = time.Minute
)

// claim locks a lab's folder.
func claim(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, alive), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return f, nil
}

// sweep removes what labs of tests that were killed left in a folder for temporary files.
func sweep(in string) {
	found, _ := filepath.Glob(filepath.Join(in, prefix+"*", alive))
	for _, name := range found {
		info, err := os.Stat(name)
		if err != nil || time.Since(info.ModTime()) < settled {
			continue
		}
		dir := filepath.Dir(name)
		f, err := claim(dir)
		if err != nil {
			continue
		}
		if removeGroups(suffix(dir)) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = f.Close()
	}
}

// suffix is what a lab's folder, control groups and link have in their names.
func suffix(dir string) string { return strings.TrimPrefix(filepath.Base(dir), prefix) }

var watch sync.Once

// endWithGo ends this process, and with it its labs, should the go test that started it be
// killed. Another parent may go when it likes.
func endWithGo() {
	parent := os.Getppid()
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	if err != nil || strings.TrimSpace(string(name)) != "go" {
		return
	}
	go func() {
		for os.Getppid() == parent {
			time.Sleep(time.Second)
		}
		fmt.Fprintln(os.Stderr, "go test was killed: its clusters end too")
		os.Exit(1)
	}()
}
