package peer

import (
	"os"

	"golang.org/x/sys/unix"
)

func ask(fd int) (Credentials, error) {
	u, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Credentials{}, os.NewSyscallError("getsockopt SO_PEERCRED", err)
	}
	return Credentials{PID: u.Pid, UID: u.Uid, GID: u.Gid}, nil
}
