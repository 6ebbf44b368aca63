package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// enterNetwork makes every process that is started from now on be born in a node's network
// namespace. The supervisor itself stays in the machine's: only the thread that starts processes
// enters, for good. It runs after the node was named, in a mount namespace of the node's own.
func (s *supervisorSlot) enterNetwork(name string) error {
	if err := s.spawner.enterNetwork(name); err != nil {
		return err
	}
	return useRealResolver()
}

// enterNetwork takes the thread that starts processes into a network namespace.
func (s *spawner) enterNetwork(name string) error {
	ns, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("its network namespace %s is gone: start the server again, which makes it anew", name)
	} else if err != nil {
		return err
	}
	defer ns.Close()
	if err := s.onThread(func() error { return unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET) }); err != nil {
		return fmt.Errorf("enter its network namespace %s: %w", name, err)
	}
	return nil
}

// InNetwork implements barrier.NodeNetwork: the thread that starts processes is in the network.
func (s *spawner) InNetwork(f func() error) error { return s.onThread(f) }

// The names of resolver files: the one that programs read, and the one that systemd-resolved keeps
// with the servers that it asks itself.
const (
	resolverFile = "/etc/resolv.conf"
	upstreamFile = "/run/systemd/resolve/resolv.conf"
)

// useRealResolver shows the node the name servers behind a resolver on the machine's loopback
// interface, which the node cannot reach. Where they are not known the node has the machine's file.
func useRealResolver() error {
	b, err := os.ReadFile(resolverFile)
	if err != nil || !asksLoopback(string(b)) {
		return nil //nolint:nilerr // a machine without a resolver
	}
	if b, err := os.ReadFile(upstreamFile); err != nil || asksLoopback(string(b)) {
		return nil //nolint:nilerr // the servers are not known
	}
	if err := unix.Mount(upstreamFile, resolverFile, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", resolverFile, err)
	}
	return nil
}

// asksLoopback reports whether a resolver file names no server but of the loopback interface.
func asksLoopback(text string) bool {
	all := false
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		if !strings.HasPrefix(f[1], "127.") && f[1] != "::1" {
			return false
		}
		all = true
	}
	return all
}
