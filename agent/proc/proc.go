// Package proc reads /proc: which process a number names now, and which
// processes belong to a tree, a session or carry an environment variable.
//
// A process is a number and its start time; the number alone is reused. What is
// read may be false a moment later: callers repeat until nothing is found.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Stat is what /proc/PID/stat says of a process.
type Stat struct {
	PID     int
	Name    string // of the program, at most 15 bytes
	State   byte   // R, S, D, Z, T …
	Parent  int
	Session int
	Start   uint64 // clock ticks after boot
	Ticks   uint64 // of CPU time, its own and that of children that it waited for
	System  uint64 // those of Ticks in the kernel
	Pages   int64  // of resident memory, of os.Getpagesize bytes
}

// Tick is the unit of Start and Ticks: Linux shows hundredths of a second to everybody.
const Tick = 10 * time.Millisecond

// Dead reports whether the process has ended and waits for its parent only.
func (s Stat) Dead() bool { return s.State == 'Z' || s.State == 'X' }

// Read returns the process with a number. The error is fs.ErrNotExist if there
// is none.
func Read(pid int) (Stat, error) {
	var buf [2048]byte // a line is far shorter; the kernel gives it whole to the first read
	name := "/proc/" + strconv.Itoa(pid) + "/stat"
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Stat{}, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	n, err := unix.Read(fd, buf[:])
	_ = unix.Close(fd)
	if errors.Is(err, unix.ESRCH) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return Stat{}, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return parseStat(string(buf[:n]))
}

// parseStat reads "PID (NAME) STATE PPID PGRP SESSION …"; the name may hold anything.
func parseStat(line string) (Stat, error) {
	open, closing := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || closing < open {
		return Stat{}, fmt.Errorf("stat line %q has no name", line)
	}
	f := strings.Fields(line[closing+1:])
	if len(f) < 22 {
		return Stat{}, fmt.Errorf("stat line %q is short", line)
	}
	s := Stat{Name: line[open+1 : closing], State: f[0][0]}
	var errs [9]error
	s.PID, errs[0] = strconv.Atoi(strings.TrimSpace(line[:open]))
	s.Parent, errs[1] = strconv.Atoi(f[1])
	s.Session, errs[2] = strconv.Atoi(f[3])
	s.Start, errs[3] = strconv.ParseUint(f[19], 10, 64)
	for i, text := range f[11:15] { // user and system, its own and its children's
		var n uint64
		n, errs[4+i] = strconv.ParseUint(text, 10, 64)
		s.Ticks += n
		if i%2 == 1 {
			s.System += n
		}
	}
	s.Pages, errs[8] = strconv.ParseInt(f[21], 10, 64)
	return s, errors.Join(errs[:]...)
}

// Traffic is how many bytes a process and the children that it waited for moved from and to disks
// and file servers. The error is that of a process that has ended, or that the caller may not ask.
func Traffic(pid int) (read, written int64, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/io")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "read_bytes":
			read = n
		case "write_bytes":
			written = n
		}
	}
	return read, written, nil
}

// PeakMemory is the largest resident memory that the calling process had since its program began,
// bytes; 0: not known. The kernel gives it to programs that it starts as their peak at first.
func PeakMemory() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(b), "\nVmHWM:")
	if !ok {
		return 0
	}
	f := strings.Fields(rest)
	n, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// Names lists the processes with these numbers that live, for people: "4711 (python,
// state D), 4712 (…)".
func Names(pids []int) string {
	var names []string
	for _, pid := range pids {
		if s, err := Read(pid); err == nil && !s.Dead() {
			names = append(names, fmt.Sprintf("%d (%s, state %c)", pid, s.Name, s.State))
		}
	}
	return strings.Join(names, ", ")
}

// Alive reports whether the process with that number and start time exists and
// has not ended.
func Alive(pid int, start uint64) bool {
	s, err := Read(pid)
	return err == nil && s.Start == start && !s.Dead()
}

// All lists every process that can be seen.
func All() ([]Stat, error) {
	pids, err := listPIDs()
	if err != nil {
		return nil, err
	}
	var all []Stat
	for _, pid := range pids {
		if s, err := Read(pid); err == nil {
			all = append(all, s)
		}
	}
	return all, nil
}

// listPIDs returns the numbers of all processes of the machine.
func listPIDs() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Descendants lists the live processes below one, without it.
func Descendants(pid int) ([]Stat, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	children := map[int][]Stat{}
	for _, s := range all {
		children[s.Parent] = append(children[s.Parent], s)
	}
	var out []Stat
	queue := []int{pid}
	for len(queue) > 0 {
		next := children[queue[0]]
		queue = queue[1:]
		for _, s := range next {
			queue = append(queue, s.PID)
			if !s.Dead() {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// Marked lists the live processes, without the caller, whose environment at
// their start held NAME=VALUE. Processes of other users cannot be read and are
// not listed; a process may have written over its environment.
func Marked(variable string) ([]Stat, error) {
	want := []byte(variable)
	return MarkedBy(func(e []byte) bool { return bytes.Equal(e, want) })
}

// MarkedBy is Marked for variables, as NAME=VALUE, of which is reports that they are meant.
func MarkedBy(is func(variable []byte) bool) ([]Stat, error) {
	pids, err := listPIDs()
	if err != nil {
		return nil, err
	}
	var out []Stat
	for _, pid := range pids {
		if pid == os.Getpid() || !startedWith(pid, is) {
			continue
		}
		// The number may have become another process's since: what is listed had the variable after
		// it had this start time.
		if s, err := Read(pid); err == nil && !s.Dead() && startedWith(pid, is) {
			out = append(out, s)
		}
	}
	return out, nil
}

// startedWith reports whether the environment of a process has a variable that is meant.
func startedWith(pid int, is func(variable []byte) bool) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for e := range bytes.SplitSeq(env, []byte{0}) {
		if is(e) {
			return true
		}
	}
	return false
}

// BootID names the machine's present run: another one means that no process of
// before lives.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}
