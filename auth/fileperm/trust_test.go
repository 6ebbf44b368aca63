package fileperm_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/auth/fileperm"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func TestFolders(t *testing.T) {
	top := t.TempDir()
	folder := func(name string, mode os.FileMode) string {
		dir := filepath.Join(top, name)
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, mode)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	good, shared := folder("good", 0o755), folder("shared", 0o775)
	open, sticky := folder("open", 0o777), folder("sticky", 0o777|os.ModeSticky)
	for dir, ok := range map[string]bool{good: true, shared: true, open: false, sticky: false} {
		if err := fileperm.Folder(dir); (err == nil) != ok || err != nil && (fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if st, err := os.Stat(shared); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("its group may write still: %v, %v", st.Mode(), err)
	}
	for _, parent := range []string{good, open, sticky} {
		if err := os.Mkdir(filepath.Join(parent, "in"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := fileperm.Way(filepath.Join(parent, "in")); (err == nil) != (parent != open) {
			t.Errorf("in %s: %v", parent, err)
		}
	}
	link := filepath.Join(good, "link")
	if err := os.Symlink(filepath.Join(open, "in"), link); err != nil {
		t.Fatal(err)
	}
	if fileperm.Way(link) == nil {
		t.Error("a link leads through a folder that everybody may write to")
	}
	file := filepath.Join(good, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if fault.KindOf(fileperm.Folder(file)) != fault.Invalid || fault.KindOf(fileperm.Folder(file+"x")) != fault.NotFound {
		t.Error("a file, and nothing")
	}
}

// TestFoldersOfOthers needs root to make them.
func TestFoldersOfOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes folders of others")
	}
	theirs := t.TempDir()
	inside := filepath.Join(theirs, "inside")
	if err := errors.Join(os.Mkdir(inside, 0o700), os.Chown(theirs, 61001, 61001)); err != nil {
		t.Fatal(err)
	}
	if err := fileperm.Folder(theirs); fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "" {
		t.Errorf("a folder of somebody else: %v", err)
	}
	if err := fileperm.Way(inside); fault.KindOf(err) != fault.Permission {
		t.Errorf("in a folder of somebody else: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Symlink(t.TempDir(), link), os.Lchown(link, 61001, 61001)); err != nil {
		t.Fatal(err)
	}
	if err := fileperm.Way(filepath.Join(link, "x")); err == nil {
		t.Error("through a link of somebody else")
	}
}
