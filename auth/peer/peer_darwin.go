package peer

import (
	"os"

	"golang.org/x/sys/unix"
)

func ask(fd int) (Credentials, error) {
	u, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return Credentials{}, os.NewSyscallError("getsockopt LOCAL_PEERCRED", err)
	}
	return Credentials{UID: u.Uid, GID: u.Groups[0]}, nil
}
