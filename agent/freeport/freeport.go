// Package freeport finds ports for jobs that serve, in the network namespace of the calling thread.
//
// A chosen port is outside of the range from which the kernel takes ports for outgoing connections, so
// nobody gets it by chance between the choice and the moment when the program listens, which may be
// minutes later. Two choosers of one network never choose the same: each holds an abstract unix socket
// with the port's number, whoever they are, and the kernel takes it back when its process ends.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// The range from which ports are chosen.
const (
	First = 21000
	Last  = 31999
)

// Held is a port that nobody else chooses until Release.
type Held struct {
	Number int
	claim  int // the abstract socket
}

// Release lets others choose the port.
func (h *Held) Release() {
	if h != nil && h.claim >= 0 {
		_ = unix.Close(h.claim)
		h.claim = -1
	}
}

// Choose chooses a port on which nobody listens.
func Choose() (*Held, error) {
	low, high := ephemeralRange()
	count := Last - First + 1
	start := rand.IntN(count)
	for i := range count {
		n := First + (start+i)%count
		if n >= low && n <= high && (low > First || high < Last) { // a range without any other is used all the same
			continue
		}
		h, err := holdPort(n)
		if err != nil {
			continue
		}
		if Check(netip.IPv4Unspecified(), n) != nil || Check(netip.IPv6Unspecified(), n) != nil {
			h.Release()
			continue
		}
		return h, nil
	}
	return nil, fmt.Errorf("no port from %d to %d is free", First, Last)
}

// holdPort has no other chooser of this network take a port.
func holdPort(n int) (*Held, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@cox-port/" + strconv.Itoa(n)}); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &Held{Number: n, claim: fd}, nil
}

// ephemeralRange is the range from which the kernel takes ports of outgoing connections.
func ephemeralRange() (low, high int) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		if _, err := fmt.Sscan(string(b), &low, &high); err == nil {
			return low, high
		}
	}
	return 32768, 60999
}

// Check reports why a program could not listen on a port at an address now; nil: it could. An address
// that this network does not have, or a kind of address, is no reason.
func Check(at netip.Addr, number int) error {
	domain := unix.AF_INET
	var addr unix.Sockaddr = &unix.SockaddrInet4{Port: number, Addr: [4]byte{}}
	if at.Is4() {
		addr = &unix.SockaddrInet4{Port: number, Addr: at.As4()}
	} else {
		domain, addr = unix.AF_INET6, &unix.SockaddrInet6{Port: number, Addr: at.As16()}
	}
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil //nolint:nilerr // a network without this kind of addresses
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil { // as servers do: what has just ended is no reason
		return err
	}
	if domain == unix.AF_INET6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	err = unix.Bind(fd, addr)
	if err == nil {
		err = unix.Listen(fd, 1)
	}
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	return err
}
