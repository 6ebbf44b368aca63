package nodecheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/discover"
	"github.com/coxswain-sched/coxswain/agent/discover/probe"
)

// setDefaults fills in this machine's own ways.
func (m *Machine) setDefaults() {
	if m.Space == nil {
		m.Space = readSpace
	}
	if m.Memory == nil {
		m.Memory = readMemory
	}
	if m.Clock == nil {
		m.Clock = readClock
	}
	if m.Mounted == nil {
		m.Mounted = isMounted
	}
	if m.GPUs == nil {
		m.GPUs = askHelper
	}
	if m.Bus == nil {
		m.Bus = readBus
	}
	if m.Xids == nil {
		m.Xids = readXids
	}
	if m.Run == nil {
		m.Run = (*exec.Cmd).Run
	}
	if m.Now == nil {
		m.Now = time.Now
	}
}

func readSpace(path string) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Space{}, fmt.Errorf("%s: %w", path, err)
	}
	s := Space{
		Free: int64(st.Bavail) * st.Bsize, Inodes: -1, //nolint:gosec // a file system of 8 EiB
		ReadOnly: st.Flags&unix.ST_RDONLY != 0,
	}
	if st.Files > 0 {
		s.Inodes, s.InodesTotal = int64(st.Ffree), int64(st.Files) //nolint:gosec // so many files
	}
	return s, nil
}

func readMemory() (MemoryState, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return MemoryState{}, err
	}
	m := MemoryState{Available: -1}
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, []byte("MemAvailable:")); ok {
			if f := strings.Fields(string(rest)); len(f) > 0 {
				n, err := strconv.ParseInt(f[0], 10, 64)
				if err != nil {
					return m, fmt.Errorf("/proc/meminfo: %w", err)
				}
				m.Available = n << 10
			}
		}
	}
	if m.Available < 0 {
		return m, errors.New("/proc/meminfo does not say how much memory is available")
	}
	counts, _ := filepath.Glob("/sys/devices/system/edac/mc/mc*/ue_count") // the pattern is well formed
	for _, name := range counts {
		if text, err := os.ReadFile(name); err == nil {
			n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // else the driver counts none
			m.Uncorrectable += n
		}
	}
	return m, nil
}

func readClock() (ClockState, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return ClockState{}, fmt.Errorf("the state of the clock: %w", err)
	}
	return ClockState{Synchronized: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, Error: time.Duration(t.Maxerror) * time.Microsecond}, nil
}

// isMounted reports whether a path is where something is mounted.
func isMounted(path string) (bool, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	want := filepath.Clean(path)
	for line := range bytes.Lines(data) {
		if f := strings.Fields(string(line)); len(f) > 4 && unescapeMount(f[4]) == want {
			return true, nil
		}
	}
	return false, nil
}

// unescapeMount reads a path as mountinfo writes it: \040 for a space.
func unescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

func askHelper(ctx context.Context) (probe.Report, error) {
	helper := discover.FindHelper()
	if helper == "" {
		return probe.Report{Error: &probe.Error{Kind: probe.NoLibrary, Text: discover.HelperName + " is not installed"}}, nil
	}
	out, err := discover.Exec(ctx, helper)
	var r probe.Report
	if jsonErr := json.Unmarshal(out, &r); jsonErr != nil {
		return r, errors.Join(err, fmt.Errorf("%s gave no report", discover.HelperName))
	}
	return r, nil
}

func readBus(address string) ([]byte, error) {
	f, err := os.Open(filepath.Join("/sys/bus/pci/devices", address, "config"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 4)
	n, err := f.Read(head)
	return head[:n], err
}

// readXids reads the kernel's log from its beginning, without waiting for more.
func readXids(since time.Time) ([]Xid, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }() // it was only read
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return nil, err
	}
	booted := time.Now().Add(-time.Duration(now.Nano()))
	var out []Xid
	record := make([]byte, 8<<10)
	for {
		n, err := unix.Read(fd, record)
		switch {
		case errors.Is(err, unix.EAGAIN) || err == nil && n == 0:
			return out, nil
		case errors.Is(err, unix.EPIPE): // overwritten meanwhile: the next one
			continue
		case err != nil:
			return out, err
		}
		if x, ok := parseXid(string(record[:n]), booted); ok && x.At.After(since) {
			out = append(out, x)
		}
	}
}
