package slurmcmd

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// UserID returns the number of a user of this machine by name, or reads a number.
func UserID(name string) (uint32, bool) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n), true
	}
	return findEntry("/etc/passwd", name)
}

// Me is the number of the user who runs the command.
func Me() int { return os.Getuid() }

// UserName returns the name of a user of this machine by name or number; what is not
// known stays as it is.
func UserName(text string) string {
	name := text
	if _, err := strconv.ParseUint(text, 10, 32); err != nil {
		return text
	}
	eachLine("/etc/passwd", func(f []string) bool {
		if len(f) > 2 && f[2] == text {
			name = f[0]
			return false
		}
		return true
	})
	return name
}

// MyName is the name of the user who runs the command.
func MyName() string { return UserName(strconv.Itoa(Me())) }

// GroupName returns the name of a group of this machine, or its number.
func GroupName(gid uint32) string {
	text := strconv.FormatUint(uint64(gid), 10)
	name := text
	eachLine("/etc/group", func(f []string) bool {
		if len(f) > 2 && f[2] == text {
			name = f[0]
			return false
		}
		return true
	})
	return name
}

// GroupID returns the number of a group of this machine by name, or reads a number.
func GroupID(name string) (uint32, bool) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n), true
	}
	return findEntry("/etc/group", name)
}

// findEntry finds the number of a name in a file of the form name:x:number:….
func findEntry(file, name string) (id uint32, found bool) {
	eachLine(file, func(f []string) bool {
		if len(f) > 2 && f[0] == name {
			n, err := strconv.ParseUint(f[2], 10, 32)
			id, found = uint32(n), err == nil
		}
		return !found
	})
	return id, found
}

func eachLine(file string, f func(fields []string) bool) {
	r, err := os.Open(file)
	if err != nil {
		return
	}
	defer r.Close()
	for s := bufio.NewScanner(r); s.Scan(); {
		if !f(strings.Split(s.Text(), ":")) {
			return
		}
	}
}
