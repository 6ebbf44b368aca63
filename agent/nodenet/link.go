package nodenet

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

func linkExists(name string) bool {
	_, err := netlink.LinkByName(name)
	return err == nil
}

// wayOut is the interface of the default route, and its MTU; "" and 0 if there is none.
func wayOut() (mtu int, name string) {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Dst: nil}, netlink.RT_FILTER_DST)
	if err != nil {
		return 0, ""
	}
	for _, r := range routes {
		if l, err := netlink.LinkByIndex(r.LinkIndex); err == nil {
			return l.Attrs().MTU, l.Attrs().Name
		}
	}
	return 0, ""
}

// ensureBridge makes the bridge, with the machine's address, if it is not there.
func (r *record) ensureBridge(mtu int) (netlink.Link, error) {
	l, err := netlink.LinkByName(r.bridgeName())
	if err != nil {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = r.bridgeName(), mtu
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
			return nil, fmt.Errorf("make bridge %s: %w", r.bridgeName(), err)
		}
		if l, err = netlink.LinkByName(r.bridgeName()); err != nil {
			return nil, err
		}
	}
	at := &netlink.Addr{IPNet: &net.IPNet{IP: r.addressAt(1).AsSlice(), Mask: net.CIDRMask(r.parseSubnet().Bits(), 32)}}
	if err := netlink.AddrReplace(l, at); err != nil {
		return nil, fmt.Errorf("give bridge %s its address: %w", r.bridgeName(), err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return nil, fmt.Errorf("turn bridge %s on: %w", r.bridgeName(), err)
	}
	return l, nil
}

// namespaceFile is the file of a node's namespace.
func (r *record) namespaceFile(n nodeLink) string { return r.namespacePrefix() + n.Name }

// ensureNode makes a node's namespace and its interface, if they are not there.
func (r *record) ensureNode(n nodeLink, bridge netlink.Link, mtu int) error {
	name := r.namespaceFile(n)
	if !isNamespace(name) {
		_ = os.Remove(name) // an empty file, of a machine that was started anew
		if err := makeNamespace(filepath.Base(name)); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
	}
	ns, err := netns.GetFromPath(name)
	if err != nil {
		return err
	}
	defer ns.Close()
	inside, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer inside.Close()
	if _, err := inside.LinkByName("eth0"); err != nil || !linkExists(r.vethName(n)) {
		if old, err := netlink.LinkByName(r.vethName(n)); err == nil {
			_ = netlink.LinkDel(old) // its namespace is about to go, or is gone
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU, attrs.MasterIndex = r.vethName(n), mtu, bridge.Attrs().Index
		veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(ns)), PeerMTU: uint32(mtu)} //nolint:gosec // a small number
		if err := netlink.LinkAdd(veth); err != nil {
			return fmt.Errorf("make interface %s: %w", r.vethName(n), err)
		}
	}
	outer, err := netlink.LinkByName(r.vethName(n))
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMaster(outer, bridge); err != nil { // the bridge may be a new one
		return fmt.Errorf("put interface %s into its bridge: %w", r.vethName(n), err)
	}
	if err := netlink.LinkSetUp(outer); err != nil {
		return fmt.Errorf("turn interface %s on: %w", r.vethName(n), err)
	}
	return r.configureInside(n, inside)
}

// configureInside gives a node's namespace its addresses and its route.
func (r *record) configureInside(n nodeLink, inside *netlink.Handle) error {
	lo, err := inside.LinkByName("lo")
	if err != nil {
		return err
	}
	eth, err := inside.LinkByName("eth0")
	if err != nil {
		return err
	}
	at := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(n.Address).To4(), Mask: net.CIDRMask(r.parseSubnet().Bits(), 32)}}
	if err := inside.AddrReplace(eth, at); err != nil {
		return fmt.Errorf("give the node address %s: %w", n.Address, err)
	}
	if err := errors.Join(inside.LinkSetUp(lo), inside.LinkSetUp(eth)); err != nil {
		return fmt.Errorf("turn its interfaces on: %w", err)
	}
	route := &netlink.Route{LinkIndex: eth.Attrs().Index, Gw: r.addressAt(1).AsSlice()}
	if err := inside.RouteReplace(route); err != nil {
		return fmt.Errorf("give the node its route: %w", err)
	}
	return nil
}

// isNamespace reports whether a file is a network namespace that is mounted there.
func isNamespace(name string) bool {
	var st unix.Statfs_t
	return unix.Statfs(name, &st) == nil && st.Type == unix.NSFS_MAGIC
}

// makeNamespace makes a namespace with a name. The thread that does it enters the namespace and
// has to come back; one that does not is given up.
func makeNamespace(name string) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- func() error {
			back, err := netns.Get()
			if err != nil {
				runtime.UnlockOSThread()
				return err
			}
			defer back.Close()
			ns, err := netns.NewNamed(name)
			if err == nil {
				_ = ns.Close()
			}
			if netns.Set(back) == nil {
				runtime.UnlockOSThread() // else the thread ends with this goroutine
			}
			return err
		}()
	}()
	return <-done
}

// removeNode removes a node's namespace. The kernel removes the interface with it, a moment later:
// to ask for that and to wait for it takes 20 ms a node.
func (r *record) removeNode(n nodeLink) error {
	name := r.namespaceFile(n)
	if err := unix.Unmount(name, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove namespace %s: %w", name, err)
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// busyNodes counts the processes in each node's namespace. A supervisor is in it by a thread only,
// so threads are looked at.
func (r *record) busyNodes() map[string]int {
	of := map[string]string{} // "net:[4026532281]" → node
	for _, n := range r.Nodes {
		var st unix.Stat_t
		if name := r.namespaceFile(n); isNamespace(name) && unix.Stat(name, &st) == nil {
			of[fmt.Sprintf("net:[%d]", st.Ino)] = n.Name
		}
	}
	busy := map[string]int{}
	if len(of) == 0 {
		return busy
	}
	processes, _ := os.ReadDir("/proc")
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		seen := map[string]bool{}
		threads, _ := os.ReadDir("/proc/" + p.Name() + "/task")
		for _, t := range threads {
			at, err := os.Readlink("/proc/" + p.Name() + "/task/" + t.Name() + "/ns/net")
			if node, ok := of[at]; err == nil && ok && !seen[node] {
				seen[node] = true
				busy[node]++
			}
		}
	}
	return busy
}

// takeDown removes everything of a network. others are the networks that stay.
func (r *record) takeDown(others []*record) error {
	var errs []error
	r.removeFence()
	errs = append(errs, r.closeWayOut(others), r.unnameNodes())
	for _, n := range r.Nodes {
		errs = append(errs, r.removeNode(n))
	}
	if l, err := netlink.LinkByName(r.bridgeName()); err == nil {
		errs = append(errs, netlink.LinkDel(l))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.Remove(recordName(r.Number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
