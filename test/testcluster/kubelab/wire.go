package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Addresses inside every lab. Its namespace is its own, so they are the same in all.
const (
	services   = "10.96.0.0/16"
	apiAddress = "10.96.0.1"  // as pods know it: the first of services
	dnsAddress = "10.96.0.10" // of CoreDNS
	allPods    = "10.244.0.0/16"
)

// nodeAddress is a node's, podNet that of its pods; nodes are counted from 0.
func nodeAddress(i int) string { return fmt.Sprintf("10.95.0.%d", i+1) }
func podNet(i int) string      { return fmt.Sprintf("10.244.%d.0/24", i+1) }

// wire is a lab's network namespace and the link that joins it to this machine. Both are
// gone when nobody holds the namespace any more.
type wire struct {
	space  *os.File // the namespace
	held   *os.File // that nobody else has the link's addresses
	link   string   // the interface on this machine
	server string   // the lab's address on the link
	near   string   // this machine's
}

// connectNetwork makes a network.
func connectNetwork(ctx context.Context, name string, nodes []string) (*wire, error) {
	near, far, held, err := freeLink()
	if err != nil {
		return nil, err
	}
	w := &wire{held: held, link: "ck" + name, server: far.String(), near: near.String()}
	if w.space, err = newSpace(); err != nil {
		w.close()
		return nil, err
	}
	steps := []string{
		"ip link set lo up",
		"ip address add " + apiAddress + "/32 dev lo",
		"ip address add " + dnsAddress + "/32 dev lo",
		fmt.Sprintf("ip address add %s/30 dev world", far),
		"ip link set world up",
	}
	for i := range nodes {
		steps = append(steps, fmt.Sprintf("ip address add %s/32 dev lo", nodeAddress(i)))
	}
	err = errors.Join(
		w.runInNetwork(ctx, fmt.Sprintf("ip link add %s type veth peer name world netns /proc/self/fd/3", w.link)),
		w.runInNetwork(ctx, fmt.Sprintf("ip address add %s/30 dev %s", near, w.link)),
		w.runInNetwork(ctx, "ip link set "+w.link+" up"),
	)
	if err == nil {
		err = w.runInNetwork(ctx, append(w.nsenterArgs(), "sh", "-ec", strings.Join(steps, "\n"))...)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// nsenterArgs are words to stand behind for a command that is to be in the network. It has to be
// given the namespace as its file 3.
func (w *wire) nsenterArgs() []string { return []string{"nsenter", "--net=/proc/self/fd/3", "--"} }

// runInNetwork runs a command: one line, or words.
func (w *wire) runInNetwork(ctx context.Context, words ...string) error {
	if len(words) == 1 {
		words = strings.Fields(words[0])
	}
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.ExtraFiles = []*os.File{w.space}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w: %s", words, err, out)
	}
	return nil
}

// close takes the link away. The namespace lasts as long as one of its processes.
func (w *wire) close() {
	if w.space != nil {
		_ = w.runInNetwork(context.Background(), "ip link delete "+w.link)
		_ = w.space.Close()
	}
	_ = w.held.Close()
}

// newSpace makes a network namespace that is held by the file alone.
func newSpace() (*os.File, error) {
	type made struct {
		f   *os.File
		err error
	}
	done := make(chan made)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends, as its namespace is not that of the others
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- made{nil, fmt.Errorf("a network namespace: %w", err)}
			return
		}
		f, err := os.Open("/proc/thread-self/ns/net")
		done <- made{f, err}
	}()
	m := <-done
	return m.f, m.err
}

// freeLink finds the two addresses of a link that no other lab has, and holds them until the
// file that it returns is closed: each lab locks a byte of one file.
func freeLink() (near, far netip.Addr, held *os.File, err error) {
	held, err = os.OpenFile(filepath.Join(os.TempDir(), "cox-kube-links"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return near, far, nil, err
	}
	const links = 1 << 14
	first := rand.IntN(links) //nolint:gosec // a place to begin, not a secret
	for i := range links {
		n := (first + i) % links
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(n), Len: 1}
		if unix.FcntlFlock(held.Fd(), unix.F_OFD_SETLK, &lock) == nil {
			at := netip.AddrFrom4([4]byte{100, 127, byte(n >> 6), byte(n << 2)}) // of 100.64.0.0/10, which nobody has as a network at home
			return at.Next(), at.Next().Next(), held, nil
		}
	}
	_ = held.Close()
	return near, far, nil, errors.New("no free address for a link")
}
