package cli

import (
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Caller is who calls, as the operating system knows him.
func Caller() job.Owner {
	o := job.Owner{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), User: strconv.Itoa(os.Getuid())}
	if u, err := user.Current(); err == nil {
		o.User = u.Username
	}
	return o
}

// Hostname is the name of this machine.
func Hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// Umask is the process's mask of file modes. It can only be read by setting it.
func Umask() uint32 {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return uint32(mask)
}
