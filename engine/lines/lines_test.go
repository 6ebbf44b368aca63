package lines_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine/lines"
	"github.com/coxswain-sched/coxswain/fault"
)

// open opens a file in which lines that begin with "?" cannot be read, and returns the others.
func open(t *testing.T, name string) (*lines.File, []string) {
	t.Helper()
	var all []string
	f, err := lines.Open(name, func(line []byte) bool {
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

func add(t *testing.T, f *lines.File, all ...string) {
	t.Helper()
	for _, line := range all {
		if err := f.Add([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
}

// has closes a file and compares it with lines.
func has(t *testing.T, f *lines.File, name string, want ...string) {
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
		if _, err := lines.Open(name, func([]byte) bool { return true }); fault.KindOf(err) != fault.Conflict {
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

// TestAFullDisk: a line for which there is no room is not in the file, not in part either, and
// one that fits follows those before.
//
// Seen to fail with: a line that is left in part, as WriteAt says of none that a part is there.
func TestAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("it takes a file system of its own: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
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
