package freeport_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/freeport"
)

// TestChosenPortsDiffer holds many ports at once, and listens on one.
func TestChosenPortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		h, err := freeport.Choose()
		if err != nil {
			t.Fatal(err)
		}
		defer h.Release()
		if seen[h.Number] || h.Number < freeport.First || h.Number > freeport.Last {
			t.Fatalf("port %d, after %v", h.Number, seen)
		}
		seen[h.Number] = true
	}
	h, err := freeport.Choose()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", h.Number))
	if err != nil {
		t.Fatalf("a port that was chosen: %v", err)
	}
	_ = l.Close()
}

func TestCheckSeesListeners(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	number := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // a listener's
	for at, want := range map[string]error{"0.0.0.0": unix.EADDRINUSE, "127.0.0.1": unix.EADDRINUSE, "127.0.0.2": nil, "192.0.2.1": nil} {
		if err := freeport.Check(netip.MustParseAddr(at), number); !errors.Is(err, want) {
			t.Errorf("at %s: %v, want %v", at, err, want)
		}
	}
	if got, want := freeport.Listener(number), fmt.Sprintf("(process %d)", os.Getpid()); !strings.HasSuffix(got, want) {
		t.Errorf("it listens: %q, want %s", got, want)
	}
}
