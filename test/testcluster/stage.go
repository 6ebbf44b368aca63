// Package testcluster is for tests only: what the labs of driver/kube and driver/slurm, which run real
// clusters as processes of a test, have in common. Nothing of a lab outlives its test: its
// processes die with it; its folder and its empty control groups, if the test was killed, the
// next lab removes.
package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// alive is the name of the file in a lab's folder that is locked as long as its test lives, and
// settled how old one is that its lab has surely locked.
const (
	alive   = "alive"
	settled = time.Minute
)

// Folder makes a folder for a lab, whose name begins with prefix, and removes those of that
// prefix whose tests were killed. remove takes away what else their labs have left; an error
// keeps the folder, for another time.
func Folder(t testing.TB, prefix string, remove func(dir string) error) string {
	t.Helper()
	dir, err := os.MkdirTemp("", prefix)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = claimed.Close() })
	sweep(filepath.Dir(dir), prefix, remove)
	return dir
}

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
func sweep(in, prefix string, remove func(dir string) error) {
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
		if remove(dir) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = f.Close()
	}
}

// RemoveGroups removes control groups, by a pattern of filepath.Glob, and those in them: they
// outlive their processes.
func RemoveGroups(pattern string) error {
	found, err := filepath.Glob(pattern)
	for _, top := range found {
		var all []string
		_ = filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				all = append(all, name)
			}
			return nil
		})
		for _, name := range slices.Backward(all) {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// EndWithGo ends this process, and with it its labs, should the go test that started it be
// killed. Another parent may go when it likes.
var EndWithGo = sync.OnceFunc(func() {
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
})

// Patience ends a hung start; nothing is timed by it.
const Patience = 5 * time.Minute

// Await waits for something to become true.
func Await(ctx context.Context, what string, ok func() bool) error {
	for deadline := time.Now().Add(Patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %s", what, Patience)
		}
	}
	return nil
}

// CPU is how much processor time a process has used.
func CPU(t testing.TB, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	var ticks int
	for _, i := range []int{11, 12} { // utime, stime, in hundredths of a second
		n, err := strconv.Atoi(f[i])
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
