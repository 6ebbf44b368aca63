package freeport_test

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/freeport"
)

// TestListeners: the sockets that take connections to an address are those at it and at every address,
// of both kinds; those at another address and connections are not among them.
func TestListeners(t *testing.T) {
	for _, c := range []struct {
		network, listen, asked string
		takes                  bool
	}{
		{"tcp4", "127.0.0.1", "127.0.0.1", true},
		{"tcp4", "127.0.0.5", "127.0.0.5", true},
		{"tcp4", "127.0.0.5", "127.0.0.1", false},
		{"tcp4", "0.0.0.0", "127.0.0.5", true},
		{"tcp", "::", "127.0.0.5", true},
		{"tcp6", "::1", "::1", true},
		{"tcp6", "::1", "127.0.0.1", false},
	} {
		l, err := net.Listen(c.network, net.JoinHostPort(c.listen, "0"))
		if err != nil {
			if c.network == "tcp6" {
				continue // a machine without this kind of addresses
			}
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // a listener's
		got := freeport.Listeners(netip.MustParseAddr(c.asked), port)
		if takes := len(got) == 1; takes != c.takes {
			t.Errorf("%s at %s: %s is said to be taken by %+v", c.network, c.listen, c.asked, got)
		} else if takes && (got[0].UID != os.Getuid() || !slices.Contains(got[0].Holders(), os.Getpid())) {
			t.Errorf("%s at %s: it is of user %d, processes %v", c.network, c.listen, got[0].UID, got[0].Holders())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if after := freeport.Listeners(netip.MustParseAddr(c.asked), port); len(after) > 0 {
			t.Errorf("after the end: %+v", after)
		}
	}
}
