package devicelock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/devicelock"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// TestMain lets the test binary be another owner: it takes a device, says so, and holds it until its
// standard input ends.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "hold" {
		l := locker(os.Args[3], os.Args[2])
		d := gpu("GPU-1", "0000:17:00.0")
		if _, err := l.Take(&d); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func locker(identity string, folders ...string) *devicelock.Locker {
	return &devicelock.Locker{Owner: devicelock.NewOwner("cox up", identity, "/var/lib/"+identity, "/run/"+identity+".sock"), Folders: folders}
}

func gpu(uuid, bus string) fleet.Device {
	return fleet.Device{Kind: "gpu", Type: "h100", UUID: uuid, Bus: bus}
}

// sticky makes a folder as /run/lock is.
func sticky(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// hold starts another process, of a user, that takes GPU-1 and returns what it said first.
func hold(t *testing.T, binary, dir, identity string, uid uint32) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(binary, "hold", dir, identity)
	if uid != uint32(os.Getuid()) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, _ := bufio.NewReader(out).ReadString('\n')
	return cmd, strings.TrimSpace(line)
}

func me(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// A device has one owner, whichever of its names the other one knows. Processes of one owner hold it
// together, and the last of them gives it up.
func TestOneOwner(t *testing.T) {
	dir, other := sticky(t), sticky(t)
	both, byUUID, byBus := gpu("GPU-1", "0000:17:00.0"), gpu("GPU-1", ""), gpu("", "0000:17:00.0")
	a, b := locker("a", dir, other), locker("b", dir)
	first, err := a.Take(&both)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []fleet.Device{both, byUUID, byBus} {
		_, err := b.Take(&d)
		var held *devicelock.HeldError
		if !errors.As(err, &held) || held.Owner.Identity != "a" || fault.KindOf(err) != fault.Conflict ||
			!strings.Contains(err.Error(), fmt.Sprintf("is held by cox up, process %d of user ", os.Getpid())) || !strings.Contains(err.Error(), "unix:///run/a.sock") {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if _, err := locker("c", filepath.Join(dir, "gone"), other).Take(&byBus); fault.KindOf(err) != fault.Conflict {
		t.Errorf("in the other folder: %v", err)
	}
	second, err := a.Join(&byUUID)
	if err != nil {
		t.Fatal(err)
	}
	first.Release()
	if _, err := b.Take(&both); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the owner's second process holds it: %v", err)
	}
	again, err := a.Take(&both) // as a server that starts anew, beside its jobs
	if err != nil {
		t.Fatal(err)
	}
	second.Release()
	again.Release()
	for _, d := range []string{dir, other} {
		if left, err := os.ReadDir(d); err != nil || len(left) > 0 {
			t.Errorf("left in the folder: %v, %v", left, err)
		}
	}
	third, err := b.Take(&both)
	if err != nil {
		t.Fatal(err)
	}
	third.Release()
}

// Instances of one GPU may have different owners; the GPU as a whole has none of them meanwhile.
// Declared devices have none at all.
func TestInstancesAndDeclaredDevices(t *testing.T) {
	dir := sticky(t)
	whole := gpu("GPU-1", "0000:17:00.0")
	one, two := gpu("MIG-1", "0000:17:00.0"), gpu("MIG-2", "0000:17:00.0")
	one.Parent, two.Parent = "GPU-1", "GPU-1"
	a, b := locker("a", dir), locker("b", dir)
	first, err := a.Take(&one)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.Take(&two)
	if err != nil {
		t.Fatalf("another instance: %v", err)
	}
	for _, d := range []fleet.Device{one, whole} {
		if _, err := b.Take(&d); fault.KindOf(err) != fault.Conflict {
			t.Errorf("%s: %v", d.UUID, err)
		}
	}
	first.Release()
	if _, err := a.Take(&whole); fault.KindOf(err) != fault.Conflict {
		t.Errorf("one instance is held: %v", err)
	}
	second.Release()
	third, err := a.Take(&whole)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Release()
	declared := fleet.Device{UUID: "GPU-1", Bus: "0000:17:00.0", Declared: true}
	if set, errs := b.TakeAll([]fleet.Device{declared, {Kind: "gpu"}}); len(errs) > 0 || devicelock.Lockable(&declared) {
		t.Error(errs)
	} else {
		set.Release()
	}
	if _, errs := b.TakeAll([]fleet.Device{one, two}); len(errs) != 2 || !strings.Contains(devicelock.Refusal(errs).Error(), "MIG-1), GPU 0 (h100, MIG-2) are held by cox up") {
		t.Error(devicelock.Refusal(errs))
	}
}

// SIGKILL frees the devices of a process.
func TestKilledOwner(t *testing.T) {
	dir := sticky(t)
	d := gpu("GPU-1", "0000:17:00.0")
	cmd, said := hold(t, me(t), dir, "a", uint32(os.Getuid()))
	if said != "held" {
		t.Fatal(said)
	}
	b := locker("b", dir)
	if _, errs := b.TakeAll([]fleet.Device{d}); len(errs) != 1 || !strings.Contains(errs[0].Error(), fmt.Sprintf("process %d of user", cmd.Process.Pid)) {
		t.Errorf("%v, want it held by process %d", errs, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	set, errs := b.TakeAll([]fleet.Device{d})
	if len(errs) > 0 {
		t.Error(errs)
	}
	set.Release()
}

// What another user may have put in the way is never followed or written to, and counts as held.
func TestFilesInTheWay(t *testing.T) {
	d := gpu("GPU-1", "")
	for what, put := range map[string]func(victim, name string) error{
		"a symbolic link": os.Symlink,
		"a hard link":     os.Link,
		"a folder":        func(_, name string) error { return os.Mkdir(name, 0o700) },
		"a pipe":          func(_, name string) error { return unix.Mkfifo(name, 0o666) },
		"a dangling link": func(_, name string) error { return os.Symlink(filepath.Join(t.TempDir(), "new"), name) },
	} {
		dir, victim := sticky(t), filepath.Join(t.TempDir(), "victim")
		if err := os.WriteFile(victim, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "coxswain-device-gpu-1")
		if err := put(victim, name); err != nil {
			t.Fatal(err)
		}
		if _, err := locker("a", dir).Take(&d); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", what, err)
		}
		if text, err := os.ReadFile(victim); err != nil || string(text) != "kept" {
			t.Errorf("%s: the file that it leads to holds %q, %v", what, text, err)
		}
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := locker("a", open, "/nowhere").Take(&d); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("where everybody may remove files: %v", err)
	}
}

// Users see each other's locks, also those that they may not read.
func TestAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root has processes of other users")
	}
	dir := sticky(t)
	binary := filepath.Join(filepath.Dir(dir), "cox")
	text, err := os.ReadFile(me(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, text, 0o755); err != nil {
		t.Fatal(err)
	}
	const anna, bert = 65533, 65532
	_, said := hold(t, binary, dir, "a", anna)
	if said != "held" {
		t.Fatal(said)
	}
	d := gpu("GPU-1", "0000:17:00.0")
	if _, err := locker("root", dir).Take(&d); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "of user 65533") {
		t.Errorf("root: %v", err)
	}
	if _, said := hold(t, binary, dir, "b", bert); !strings.Contains(said, "of user 65533") {
		t.Errorf("another user: %s", said)
	}
	for _, name := range []string{"gpu-1", "0000_17_00.0"} {
		if err := os.Chmod(filepath.Join(dir, "coxswain-device-"+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, said := hold(t, binary, dir, "b", bert); !strings.Contains(said, "held by "+dir) || !strings.Contains(said, "belongs to user 65533 and cannot be opened") {
		t.Errorf("a file that he may not read: %s", said)
	}
}
