package discover

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// System is what the kernel says of its machine at one moment. What cannot be read is zero.
type System struct {
	Arch   string    // as uname -m: x86_64
	OS     string    // name, release and version of the kernel
	Booted time.Time // to the second
	Load   float64   // processes that run or wait for the disk, over the last minute
}

// ReadSystem reads what the kernel says now. It opens two small files of /proc.
func ReadSystem() System {
	var s System
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		s.Arch = unix.ByteSliceToString(u.Machine[:])
		s.OS = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Version[:])
	}
	if b, err := os.ReadFile("/proc/stat"); err == nil {
		s.Booted = bootTime(string(b))
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(b), " ")
		s.Load, _ = strconv.ParseFloat(first, 64)
	}
	return s
}

// bootTime finds when the machine was started in the text of /proc/stat.
func bootTime(stat string) time.Time {
	for line := range strings.Lines(stat) {
		if text, ok := strings.CutPrefix(line, "btime "); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
				return time.Unix(n, 0)
			}
		}
	}
	return time.Time{}
}
