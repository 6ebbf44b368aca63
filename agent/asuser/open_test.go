package asuser

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestDoorsOfThisProcessStayShut: a user must not read by way of what root has open.
func TestDoorsOfThisProcessStayShut(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("changing the user needs root")
	}
	secret := filepath.Join(t.TempDir(), "private")
	if err := os.MkdirAll(secret, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(secret, "open-to-all")
	if err := os.WriteFile(file, []byte("secret"), 0o644); err != nil { //nolint:gosec // its folder keeps it
		t.Fatal(err)
	}
	held, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	t.Chdir(secret)
	public, err := os.MkdirTemp("/tmp", "asuser")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(public)
	if err := os.Chmod(public, 0o755); err != nil { //nolint:gosec // the test's own
		t.Fatal(err)
	}
	link := filepath.Join(public, "link")
	if err := os.Symlink("/proc/self/cwd/open-to-all", link); err != nil {
		t.Fatal(err)
	}
	nobody := User{UID: 65534, GID: 65534, Groups: []uint32{65534}}
	for _, name := range []string{
		file, "/proc/self/cwd/open-to-all", "/proc/self/root" + file, "/proc/self/fd/" + strconv.Itoa(int(held.Fd())), link, "/proc/self/maps",
	} {
		err := Do(nobody, func() error {
			f, err := OpenFile(name, os.O_RDONLY, 0)
			if err == nil {
				return f.Close()
			}
			return err
		})
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
	}
	plain := filepath.Join(public, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil { //nolint:gosec // for everybody
		t.Fatal(err)
	}
	if err := os.Symlink("plain", filepath.Join(public, "alias")); err != nil {
		t.Fatal(err)
	}
	err = Do(nobody, func() error {
		f, err := OpenFile(filepath.Join(public, "alias"), os.O_RDONLY, 0)
		if err == nil {
			err = f.Close()
		}
		return err
	})
	if err != nil {
		t.Errorf("an ordinary link: %v", err)
	}
}

func TestThroughProc(t *testing.T) {
	dir := t.TempDir()
	for from, to := range map[string]string{"a": "/proc/self/cwd", "b": "a", "c": "../..", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{
		"/proc/self/fd/3": true, dir + "/a/x": true, dir + "/b": true, dir + "/c/x": false, "/etc/passwd": false, dir + "/loop": false,
	} {
		if got := throughProc(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
