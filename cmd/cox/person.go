package main

import (
	"os"
	"os/user"
	"strconv"

	"github.com/coxswain-sched/coxswain/model/job"
)

// owner is who calls, as the operating system knows him.
func owner() job.Owner {
	o := job.Owner{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), User: strconv.Itoa(os.Getuid())}
	if u, err := user.Current(); err == nil {
		o.User = u.Username
	}
	return o
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
