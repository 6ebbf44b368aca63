package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ownState gives StateSaveLocation a file system of its own, within the lab's mounts.
func (l *Lab) ownState(ctx context.Context, size int64) error {
	out, err := exec.CommandContext(ctx, "nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", l.hold.cmd.Process.Pid), "--",
		"mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,uid=%d,gid=%d,mode=755", size, l.slurm.uid, l.slurm.gid), "none", filepath.Join(l.hold.root, l.Dir, "state")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("a file system for StateSaveLocation: %w: %s", err, out)
	}
	return nil
}

// Fill leaves no room in StateSaveLocation, but for some pages that slurmctld frees itself,
// until empty is called. The lab has Config.State.
func (l *Lab) Fill(t testing.TB) (empty func()) {
	t.Helper()
	name := filepath.Join(fmt.Sprintf("/proc/%d/root", l.hold.cmd.Process.Pid), l.hold.root, l.Dir, "state", "fill")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := fillDisk(f); err != nil {
		t.Fatalf("filling StateSaveLocation: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { // it deletes files, too
		defer close(over)
		for ctx.Err() == nil {
			_ = fillDisk(f)
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return func() {
		stop()
		<-over
		if err := errors.Join(f.Close(), os.Remove(name)); err != nil {
			t.Error(err)
		}
	}
}

// fillDisk writes until there is no room.
func fillDisk(f *os.File) error {
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, unix.ENOSPC) {
			size /= 2
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Offer has slurmrestd begin anew with other plugins (-s); empty: the usual ones.
func (l *Lab) Offer(t testing.TB, plugins string) {
	t.Helper()
	l.Kill(t, "slurmrestd")
	d := l.daemonByName(t, "slurmrestd")
	d.words = l.restDaemon().words
	if plugins != "" {
		d.words[6] = plugins
	}
	l.Begin(t, "slurmrestd")
}

// Reconfigure rewrites slurm.conf and has slurmctld begin anew by it; the old text is returned.
func (l *Lab) Reconfigure(t testing.TB, rewrite func(string) string) (before string) {
	t.Helper()
	b, err := os.ReadFile(l.Conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.Conf, []byte(rewrite(string(b))), 0o644); err != nil {
		t.Fatal(err)
	}
	l.signalDaemon(t, "slurmctld", unix.SIGTERM) // it saves what it knows
	l.daemonByName(t, "slurmctld").awaitExit()
	l.Begin(t, "slurmctld")
	return string(b)
}

// Without takes the lines away that begin so.
func Without(conf, prefix string) string {
	var out []string
	for line := range strings.SplitSeq(conf, "\n") {
		if !strings.HasPrefix(line, prefix) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
