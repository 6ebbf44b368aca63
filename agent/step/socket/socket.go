// Package socket listens and connects at unix sockets whose names are longer than the
// kernel's 107 bytes, by the short way through the folder that they are in.
//
// So sockets stay where they belong, in folders that nobody else may write to: a
// shorter name in a folder for all, such as /tmp, could be taken by somebody else
// first, or again when a cleaner has removed it.
package socket

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// longest is the longest name that the kernel takes.
const longest = 107

// Listen makes a socket. Who made it removes it: closing the listener does not.
func Listen(name string) (l *net.UnixListener, err error) {
	err = withShortName(name, func(short string) error {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		return err
	})
	if err == nil {
		l.SetUnlinkOnClose(false) // the short way leads elsewhere by then
	}
	return l, err
}

// Dial connects; timeout 0: without one.
func Dial(name string, timeout time.Duration) (c net.Conn, err error) {
	err = withShortName(name, func(short string) error {
		c, err = net.DialTimeout("unix", short, timeout)
		return err
	})
	return c, err
}

// withShortName calls f with a name that is short enough, which is good until f returns.
func withShortName(name string, f func(short string) error) error {
	if len(name) <= longest {
		return f(name)
	}
	dir, err := unix.Open(filepath.Dir(name), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(name), Err: err}
	}
	defer unix.Close(dir)
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(name)))
}
