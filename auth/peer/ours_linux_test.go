package peer

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestIsOurs: a process of this user is ours, one of another user is not, and over a network
// nobody is.
//
// Seen to fail with: everybody who has credentials is ours.
func TestIsOurs(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can connect as another user")
	}
	name := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, p := range []string{name, filepath.Dir(name), filepath.Dir(filepath.Dir(name))} {
		if err := os.Chmod(p, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, uid := range []uint32{0, 65534} {
		done := make(chan error, 1)
		go func() { // on a thread of its own, which ends with it and is the only one of that user
			runtime.LockOSThread()
			if _, _, no := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); no != 0 {
				done <- no
				return
			}
			s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				defer unix.Close(s) //nolint:errcheck // the other end has been asked
				err = unix.Connect(s, &unix.SockaddrUnix{Name: name})
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got := IsOurs(c); got != (uid == 0) {
			t.Errorf("a process of user %d is ours: %v", uid, got)
		}
		_ = c.Close()
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	c, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if IsOurs(c) {
		t.Error("somebody over a network is ours")
	}
}
