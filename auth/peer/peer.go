// Package peer asks the kernel who is at the other end of a unix socket. The
// answer is the credentials that the process had when it connected; nothing that
// it sends can change them.
package peer

import (
	"net"
	"os"
	"syscall"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Credentials are a process as the kernel knows it.
type Credentials struct {
	PID      int32 // 0: not known on this system
	UID, GID uint32
}

// Of returns the credentials of a connection's other end; fault.Unsupported if it
// is no unix socket.
func Of(c net.Conn) (Credentials, error) {
	sc, ok := c.(syscall.Conn)
	if _, unix := c.(*net.UnixConn); !ok || !unix {
		return Credentials{}, fault.New(fault.Unsupported, "a %s connection has no peer credentials", c.RemoteAddr().Network())
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return Credentials{}, err
	}
	var cred Credentials
	var inner error
	if err := raw.Control(func(fd uintptr) { cred, inner = ask(int(fd)) }); err != nil {
		return Credentials{}, err
	}
	return cred, inner
}

// IsOurs reports whether the other end is a process of this one's user, or of root.
func IsOurs(c net.Conn) bool {
	cred, err := Of(c)
	return err == nil && (cred.UID == 0 || int(cred.UID) == os.Getuid())
}
