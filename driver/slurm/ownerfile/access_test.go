package ownerfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/asuser"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// openFolder is a folder that everybody may enter.
func openFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	for d := dir; d != "/"; d = filepath.Dir(d) {
		if info, err := os.Stat(d); err != nil || info.Mode()&0o001 == 0 {
			t.Skipf("not everybody may enter %s, where temporary files are: %v", d, err)
		}
	}
	return dir
}

// TestFilesOfAnotherUser: a server that cannot become a job's owner reads for him what both may
// read: not what stands open in a folder that is shut, by whatever name.
//
// Seen to fail with: a look at the file's mode alone.
func TestFilesOfAnotherUser(t *testing.T) {
	dir := openFolder(t)
	other := asuser.User{UID: uint32(os.Geteuid()) + 1, GID: uint32(os.Getegid()) + 1}
	put := func(name string, mode os.FileMode) string {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("text"), 0o600), os.Chmod(name, mode)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	secret := put("shut/inner/file", 0o644)
	want := map[string]error{
		secret: fs.ErrPermission, put("open", 0o644): nil, put("group", 0o640): fs.ErrPermission, put("mine", 0o600): fs.ErrPermission,
		"/proc/self/status": fs.ErrPermission, filepath.Join(dir, "none"): fs.ErrNotExist, dir + "/open/../open": unix.ENOTDIR,
	}
	link := func(to, name string, err error) {
		name = filepath.Join(dir, name)
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
		want[name] = err
	}
	link(secret, "link", fs.ErrPermission)
	link("shut/inner", "way", fs.ErrPermission)
	want[filepath.Join(dir, "way/file")], want[dir+"/shut/../open"] = fs.ErrPermission, fs.ErrPermission
	delete(want, filepath.Join(dir, "way"))
	link("./open", "near", nil)
	link("circle", "circle", unix.ELOOP)
	for name, want := range want {
		f, err := openFor(other, name)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if err != nil {
			continue
		}
		if b, _ := io.ReadAll(f); string(b) != "text" {
			t.Errorf("%s: %q", name, b)
		}
		_ = f.Close()
	}
	for _, name := range []string{"/", dir, "/dev/null"} {
		if f, err := openFor(other, name); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}

// TestShownAsTheKernelWould compares with what the kernel lets somebody read, for modes,
// owners, groups and access lists by chance.
//
// Seen to fail with: no look at groups; no look at the mask of access lists.
func TestShownAsTheKernelWould(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	const user, group, second = 61001, 61002, 61003
	who := asuser.User{UID: user, GID: group, Groups: []uint32{group, second}}
	dir, r := openFolder(t), rand.New(rand.NewPCG(1, 1))
	ids := []int{0, user, group, second, 61009}
	lists, shown := 0, 0
	set := func(name string) {
		mode := os.FileMode(r.IntN(0o1000))
		if err := errors.Join(os.Chown(name, ids[r.IntN(2)], ids[r.IntN(len(ids))]), os.Chmod(name, mode)); err != nil {
			t.Fatal(err)
		}
		if r.IntN(2) > 0 {
			return
		}
		right := func() uint16 { return uint16(r.IntN(8)) }
		list := []aclEntry{{aclOwner, right(), ^uint32(0)}, {aclUser, right(), uint32(user + 8*r.IntN(2))}, {aclOwningGroup, right(), ^uint32(0)}}
		for _, g := range []uint32{group, second} {
			if r.IntN(2) > 0 {
				list = append(list, aclEntry{aclGroup, right(), g})
			}
		}
		list = append(list, aclEntry{aclMask, right(), ^uint32(0)}, aclEntry{aclOthers, right(), ^uint32(0)})
		text, err := binary.Append([]byte{2, 0, 0, 0}, binary.LittleEndian, list)
		if err != nil {
			t.Fatal(err)
		}
		if unix.Setxattr(name, "system.posix_acl_access", text, 0) == nil {
			lists++
		}
	}
	for range 300 {
		folder := filepath.Join(dir, "folder")
		name := filepath.Join(folder, "file")
		if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		set(name)
		set(folder)
		kernel := asuser.Do(who, func() error {
			f, err := os.Open(name)
			if err == nil {
				err = f.Close()
			}
			return err
		})
		f, err := openFor(who, name)
		if err == nil {
			shown++
			_ = f.Close()
		}
		if (err == nil) != (kernel == nil) {
			said := ""
			for _, n := range []string{folder, name} {
				info, _ := os.Stat(n)
				f, _ := os.Open(n)
				list, _ := accessList(f)
				said += fmt.Sprintf("%s: %v %+v %+v\n", n, info.Mode(), info.Sys(), list)
			}
			t.Fatalf("%v; the kernel: %v\n%s", err, kernel, said)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d access lists, %d files shown", lists, shown); shown == 0 {
		t.Error("none is shown")
	}
}
