package killtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// holders are who has which of some locks, of those whose names begin so, by what the processes
// themselves hold.
func holders(dir, begin string) map[string]string {
	out := map[string]string{}
	names, _ := filepath.Glob(filepath.Join(dir, "lock", begin+"*"))
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		l := unix.Flock_t{Type: unix.F_RDLCK}
		err = unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l)
		b := make([]byte, 200)
		n, _ := f.ReadAt(b, 0)
		_ = f.Close()
		if who := strings.TrimSpace(string(b[:n])); err == nil && l.Type != unix.F_UNLCK && who != "" {
			out[strings.TrimPrefix(filepath.Base(name), begin)] = who
		}
	}
	return out
}

// watch compares the locks of devices with what the server says, once. Who has a
// lock before and after the server was asked has held it all the time.
func (r *round) watch() {
	for range 200 { // until there is something to see
		before := holders(r.dir, "device.")
		nodes, err := r.s.c.Nodes(r.t.Context())
		if err != nil {
			if !r.wait() {
				return
			}
			continue
		}
		after := holders(r.dir, "device.")
		said := map[string]string{}
		for _, n := range nodes.Nodes {
			for _, d := range n.Devices {
				said[fmt.Sprintf("%s.%d", n.Name, d.Index)] = strings.Join(d.Jobs, ",")
			}
		}
		for device, who := range before {
			if after[device] != who {
				continue
			}
			r.seen++
			if said[device] == "" {
				r.t.Errorf("%s has device %s, and the server says that it is free", who, device)
			}
		}
		if r.seen > 0 {
			return
		}
	}
}
