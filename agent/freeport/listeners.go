package freeport

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// Socket is a socket that listens.
type Socket struct {
	Inode string
	UID   int // of the process that made it
}

// Listeners lists the sockets that take connections to an address and a port, in the network
// namespace of the calling thread.
func Listeners(at netip.Addr, number int) []Socket {
	var all []Socket
	for _, table := range []string{"tcp", "tcp6"} {
		all = append(all, readListeners("/proc/thread-self/net/"+table, number, func(a netip.Addr) bool {
			return a.IsUnspecified() || a.Unmap() == at.Unmap()
		})...)
	}
	return all
}

// readListeners reads the sockets of a table that listen on a port, at addresses that match. A
// network without this kind of addresses has none.
func readListeners(table string, number int, matches func(netip.Addr) bool) (all []Socket) {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer f.Close()
	const listening = "0A"
	port := fmt.Sprintf("%04X", number)
	lines := bufio.NewScanner(f)
	lines.Scan() // the heading
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 10 || words[3] != listening {
			break // the kernel lists those that listen first
		}
		host, its, _ := strings.Cut(words[1], ":")
		at, ok := parseHex(host)
		if its != port || !ok || !matches(at) {
			continue
		}
		if uid, err := strconv.Atoi(words[7]); err == nil {
			all = append(all, Socket{Inode: words[9], UID: uid})
		}
	}
	return all
}

// parseHex reads an address as the kernel's tables have it: words of 32 bits in the machine's order.
func parseHex(text string) (netip.Addr, bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b)%4 != 0 {
		return netip.Addr{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	return netip.AddrFromSlice(b)
}

// Listener says who listens on a port at any address, for people: "python3 (process 4711)", or the
// user if the process cannot be seen; "" if nothing is known.
func Listener(number int) string {
	for _, table := range []string{"tcp", "tcp6"} {
		for _, s := range readListeners("/proc/thread-self/net/"+table, number, func(netip.Addr) bool { return true }) {
			return s.Describe()
		}
	}
	return ""
}

// Describe says who has a socket, as Listener does.
func (s Socket) Describe() string {
	for _, pid := range s.Holders() {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return fmt.Sprintf("%s (process %d)", strings.TrimSpace(string(comm)), pid)
	}
	return fmt.Sprintf("a process of user %d", s.UID)
}

// Holders lists the processes that have a socket, as far as the caller may look.
func (s Socket) Holders() (pids []int) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	want := "socket:[" + s.Inode + "]"
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		fds, err := os.ReadDir("/proc/" + name + "/fd")
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if to, err := os.Readlink("/proc/" + name + "/fd/" + fd.Name()); err == nil && to == want {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}
