package asuser_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/asuser"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func TestFilesAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	anna := asuser.User{UID: 61001, GID: 61001, Groups: []uint32{61500}}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "secret")
	shared := filepath.Join(dir, "shared")
	for name, mode := range map[string]os.FileMode{secret: 0o600, shared: 0o640} {
		if err := os.WriteFile(name, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(shared, 0, 61500); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(dir, "made")
	err := asuser.Do(anna, func() error {
		for _, name := range []string{secret, link} {
			if _, err := os.Open(name); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if f, err := os.Open(shared); err != nil { // by a supplementary group
			t.Error(err)
		} else {
			_ = f.Close()
		}
		return os.WriteFile(made, nil, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(made, &st); err != nil || st.Uid != 61001 || st.Gid != 61001 {
		t.Errorf("made by %d:%d, %v", st.Uid, st.Gid, err)
	}
	if _, err := os.ReadFile(secret); err != nil {
		t.Errorf("and back: %v", err)
	}
}

func TestOnlyRegularFiles(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fifo, "/dev/zero", t.TempDir()} {
		if f, err := asuser.OpenRegular(name); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}
