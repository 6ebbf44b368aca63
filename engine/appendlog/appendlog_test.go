package appendlog_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine/appendlog"
	"github.com/coxswain-sched/coxswain/internal/smalldisk"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// open opens a file in which lines that begin with "?" cannot be read, and returns the others.
func open(t *testing.T, name string) (*appendlog.File, []string) {
	t.Helper()
	var all []string
	f, err := appendlog.Open(name, func(line []byte) bool {
		ok := !strings.HasPrefix(string(line), "?")
		if ok {
			all = append(all, string(line))
		}
		return ok
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, all
}

func add(t *testing.T, f *appendlog.File, all ...string) {
	t.Helper()
	for _, line := range all {
		if err := f.Add([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
}

// has closes a file and compares it with lines.
func has(t *testing.T, f *appendlog.File, name string, want ...string) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("the file is %.60q, want %q", got, want)
	}
}

// TestWhatACrashLeaves: of a line that is there in part, or cannot be read, nothing stays, nor
// of those behind it; what is added follows the last one that counts.
//
// Seen to fail with: a file that is not cut when it is opened; a last line without its end that
// counts.
func TestWhatACrashLeaves(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{"", ""},
		{"a\nb\n", "a b"},
		{"a\nb\nlong and in par", "a b"},
		{"a\n?torn\nb\n", "a"},
		{"long and in par", ""},
	} {
		name := filepath.Join(t.TempDir(), "lines")
		if err := os.WriteFile(name, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, got := open(t, name)
		if strings.Join(got, " ") != x.want {
			t.Errorf("of %q there is read %q, want %q", x.text, got, x.want)
		}
		add(t, f, "c")
		has(t, f, name, append(got, "c")...)
	}
}

// TestOneHasAFileOpen: a second one is refused, also after the file was written anew, until the
// first one closes it.
//
// Seen to fail with: a file that is written anew and not locked.
func TestOneHasAFileOpen(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lines")
	f, _ := open(t, name)
	for range 2 {
		if _, err := appendlog.Open(name, func([]byte) bool { return true }); fault.KindOf(err) != fault.Conflict {
			t.Errorf("a second one: %v", err)
		}
		if err := f.Rewrite([]byte("a\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, all := open(t, name); !slices.Equal(all, []string{"a"}) {
		t.Errorf("%q", all)
	}
}

// TestRewrite: what is added follows what was written anew; one that fails leaves the file as it
// was, to be added to.
//
// Seen to fail with: an end that stays where it was in the old file.
func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "lines")
	f, _ := open(t, name)
	add(t, f, "a", "b", "c")
	if err := f.Rewrite([]byte("b\n")); err != nil {
		t.Fatal(err)
	}
	add(t, f, "d")
	if f.Size() != 4 {
		t.Errorf("it has %d bytes", f.Size())
	}
	if err := os.Mkdir(name+".new", 0o700); err != nil { // where the new file would be
		t.Fatal(err)
	}
	if err := f.Rewrite([]byte("x\n")); err == nil {
		t.Error("it was written anew")
	}
	add(t, f, "e")
	has(t, f, name, "b", "d", "e")
}

// TestAnOldFileIsNotLocked: who opens the file, and locks it after it was written anew or taken
// away, has an old one, which is nobody's.
//
// Seen to fail with: a lock after which nobody looks at the name.
func TestAnOldFileIsNotLocked(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lines")
	f, _ := open(t, name)
	late := func() *os.File {
		file, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	old := late()
	if err := f.Rewrite([]byte("a\n")); err != nil {
		t.Fatal(err)
	}
	if there, err := appendlog.Lock(old, name); err != nil || there {
		t.Errorf("written anew: %v %v", there, err)
	}
	if _, err := appendlog.Lock(late(), name); fault.KindOf(err) != fault.Conflict {
		t.Errorf("what has taken its place: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	old = late()
	if there, err := appendlog.Lock(old, name); err != nil || !there {
		t.Errorf("nobody has it: %v %v", there, err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if there, err := appendlog.Lock(old, name); err != nil || there {
		t.Errorf("taken away: %v %v", there, err)
	}
}

// TestSyncAfterClose says nothing of what it did not bring to the disk, and the name is left alone.
//
// Seen to fail with: a closed file that counts as one that was written anew; one that is written
// anew.
func TestSyncAfterClose(t *testing.T) {
	f, _ := open(t, filepath.Join(t.TempDir(), "lines"))
	add(t, f, "a")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("it is on the disk: %v", err)
	}
	if err := f.Rewrite([]byte("b\n")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("it is written anew: %v", err)
	}
}

// TestANameThatIsNotOnTheDisk: where the directory could not be brought to the disk once, no line
// of the file that was written anew counts as there, and none is added, until it is written anew
// again; then all do.
//
// Seen to fail with: a Rewrite whose error nobody remembers.
func TestANameThatIsNotOnTheDisk(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lines")
	f, _ := open(t, name)
	bad, calls := error(unix.EIO), 0
	f.On(appendlog.Disk{Dir: func(string) (err error) {
		calls++
		err, bad = bad, nil // it says so once
		return err
	}})
	add(t, f, "a")
	if err := f.Rewrite([]byte("a\n")); !errors.Is(err, unix.EIO) {
		t.Errorf("written anew: %v", err)
	}
	inDoubt(t, f)
	if err := f.Rewrite([]byte("a\n")); err != nil || f.Doubt() != nil {
		t.Errorf("%v, %v", err, f.Doubt())
	}
	if err := errors.Join(f.AddNow([]byte("d")), f.Sync()); err != nil || calls != 2 {
		t.Errorf("%v; the directory was brought to the disk %d times", err, calls)
	}
	has(t, f, name, "a", "d")
}

// inDoubt checks that a file whose disk failed says so as long as it is not written anew.
func inDoubt(t *testing.T, f *appendlog.File) {
	t.Helper()
	if err := f.Doubt(); !errors.Is(err, unix.EIO) {
		t.Errorf("in doubt: %v", err)
	}
	for what, do := range map[string]func() error{
		"Sync": f.Sync, "Add": func() error { return f.Add([]byte("x")) }, "AddNow": func() error { return f.AddNow([]byte("x")) },
	} {
		if err := do(); !errors.Is(err, unix.EIO) || fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// failing is a disk whose next sync fails, once, as Linux does it.
func failing() appendlog.Disk {
	failed := false
	return appendlog.Disk{File: func(f *os.File) error {
		if !failed {
			failed = true
			return unix.EIO
		}
		return f.Sync()
	}}
}

// TestADiskThatFailsOnce: what it says afterwards does not count for what it may have lost. Of a
// file that is written anew it does.
//
// Seen to fail with: a Sync, and an AddNow, whose error nobody remembers.
func TestADiskThatFailsOnce(t *testing.T) {
	for _, now := range []bool{false, true} {
		name := filepath.Join(t.TempDir(), "lines")
		f, _ := open(t, name)
		f.On(failing())
		add(t, f, "a")
		err := error(nil)
		if now {
			err = f.AddNow([]byte("b"))
		} else {
			err = f.Sync()
		}
		if !errors.Is(err, unix.EIO) {
			t.Errorf("at once %t: %v", now, err)
		}
		inDoubt(t, f)
		if err := f.Rewrite([]byte("a\n")); err != nil || f.Doubt() != nil {
			t.Errorf("at once %t: %v, %v", now, err, f.Doubt())
		}
		if err := errors.Join(f.AddNow([]byte("c")), f.Sync()); err != nil {
			t.Errorf("at once %t: %v", now, err)
		}
		has(t, f, name, "a", "c")
	}
}

// TestADiskThatFailsWhileItIsWrittenAnew leaves the old file, in doubt as it was, or not.
//
// Seen to fail with: a Rewrite that ends the doubt before it is done.
func TestADiskThatFailsWhileItIsWrittenAnew(t *testing.T) {
	for _, doubt := range []bool{false, true} {
		name := filepath.Join(t.TempDir(), "lines")
		f, _ := open(t, name)
		f.On(appendlog.Disk{File: func(*os.File) error { return unix.EIO }})
		add(t, f, "a")
		if doubt {
			_ = f.Sync()
		}
		if err := f.Rewrite([]byte("other\n")); !errors.Is(err, unix.EIO) {
			t.Errorf("in doubt %t: %v", doubt, err)
		}
		if doubt {
			inDoubt(t, f)
		} else {
			f.On(appendlog.Disk{})
			add(t, f, "b")
			if err := f.Sync(); err != nil {
				t.Error(err)
			}
			has(t, f, name, "a", "b")
		}
	}
}

// TestALineThatCannotBeTakenOut: what a failed Add left is taken out before the next line, which
// is not added as long as that fails; else when the file is closed.
//
// Seen to fail with: a Truncate that is tried once; a Close that leaves it.
func TestALineThatCannotBeTakenOut(t *testing.T) {
	for _, next := range []bool{true, false} {
		name := filepath.Join(t.TempDir(), "lines")
		f, _ := open(t, name)
		add(t, f, "a")
		shut, err := os.Open(name) // for reading: it is neither written nor cut
		if err != nil {
			t.Fatal(err)
		}
		own := f.Swap(shut)
		for range 2 {
			if err := f.AddNow([]byte("lost")); err == nil {
				t.Error("it was added")
			}
		}
		if _, err := own.WriteAt([]byte("lost\nand more\n"), 2); err != nil { // as if it had been there before the error
			t.Fatal(err)
		}
		if err := f.Swap(own).Close(); err != nil {
			t.Fatal(err)
		}
		if want := []string{"a"}; next {
			add(t, f, "b")
			has(t, f, name, append(want, "b")...)
		} else {
			has(t, f, name, want...)
		}
	}
}

// TestAFullDisk: a line for which there is no room is not in the file, not in part either, and
// one that fits follows those before.
//
// Seen to fail with: a line that is left in part, as WriteAt says of none that a part is there.
func TestAFullDisk(t *testing.T) {
	dir := t.TempDir()
	smalldisk.At(t, dir, "size=64k")
	name := filepath.Join(dir, "lines")
	f, _ := open(t, name)
	add(t, f, "a")
	for _, write := range []func([]byte) error{f.Add, f.AddNow} {
		if err := write([]byte(strings.Repeat("x", 100<<10))); err == nil {
			t.Error("there was room for it")
		}
	}
	if info, err := os.Stat(name); err != nil || info.Size() != 2 {
		t.Errorf("%v %v", info.Size(), err)
	}
	add(t, f, "b")
	has(t, f, name, "a", "b")
}

// TestTogether: many add lines, bring them to the disk and write the file anew at once; each is
// there, once. What it is worth it is worth with the race detector.
func TestTogether(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lines")
	f, _ := open(t, name)
	var mu sync.Mutex // of all, as a driver has it
	var all []string
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 50 {
				line := strings.Repeat(string(rune('a'+i)), k+1)
				mu.Lock()
				err := f.Add([]byte(line))
				all = append(all, line)
				if err == nil && k%20 == 19 {
					err = f.Rewrite([]byte(strings.Join(all, "\n") + "\n"))
				}
				mu.Unlock()
				if err == nil {
					err = f.Sync()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	has(t, f, name, all...)
}
