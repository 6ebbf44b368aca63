package fabric

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// factsOf are what a rank says of itself beside its number: the fields of the lines that the rank of
// a plain cox verify prints, and the InfiniBand ports of its node.
func factsOf(getenv func(string) string) string {
	host, _ := os.Hostname()
	devices := getenv("CUDA_VISIBLE_DEVICES")
	if devices == "" {
		devices = getenv("ROCR_VISIBLE_DEVICES")
	}
	return fmt.Sprintf("of=%s node=%s job=%s devices=%s place=%s given=%s ib=%s",
		getenv("SLURM_NTASKS"), cmp.Or(getenv("SLURMD_NODENAME"), host), getenv("SLURM_JOB_ID"), devices,
		getenv("SLURM_TOPOLOGY_ADDR"), getenv("NVIDIA_VISIBLE_DEVICES"), strings.Join(infinibandPorts("/sys/class/infiniband"), ","))
}

// infinibandPorts lists the ports of RDMA devices with their state: "mlx5_0:1:ACTIVE".
func infinibandPorts(root string) (out []string) {
	states, _ := filepath.Glob(filepath.Join(root, "*", "ports", "*", "state"))
	for _, name := range states {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		_, state, _ := strings.Cut(strings.TrimSpace(string(text)), ": ") // "4: ACTIVE"
		port := filepath.Dir(name)
		out = append(out, fmt.Sprintf("%s:%s:%s", filepath.Base(filepath.Dir(filepath.Dir(port))), filepath.Base(port), strings.ReplaceAll(state, " ", "_")))
	}
	return out
}

// maxAddresses bounds the addresses that a rank tells, and that another one tries.
const maxAddresses = 8

// ownAddresses are the node's addresses, each with a port. Interfaces that lead to a network come first, the
// fastest at the top. Pairs and bridges follow: the kernel invents their speed, and they vanish with their
// container. The loopback is last: nodes that share a machine have no other in common.
func ownAddresses(port int) []string {
	type address struct {
		at          string
		kind, speed int
	}
	var all []address
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		list, _ := i.Addrs()
		for _, a := range list {
			n, ok := a.(*net.IPNet)
			if !ok || n.IP.IsLinkLocalUnicast() || n.IP.IsLoopback() && n.IP.To4() == nil {
				continue
			}
			x := address{at: net.JoinHostPort(n.IP.String(), strconv.Itoa(port)), kind: 2}
			if !n.IP.IsLoopback() {
				x.speed = linkSpeed(i.Name)
				if x.kind = 0; isLocalLink(networkDevices, i.Name) {
					x.kind = 1
				}
			}
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b address) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(b.speed, a.speed)) })
	var out []string
	for _, x := range all[:min(len(all), maxAddresses)] {
		out = append(out, x.at)
	}
	return out
}

// networkDevices has a folder for each interface.
const networkDevices = "/sys/class/net"

// isLocalLink reports whether an interface is no hardware and does not stand for any: one end of a pair,
// a bridge or a tunnel.
func isLocalLink(root, name string) bool {
	if _, err := os.Stat(filepath.Join(root, name, "device")); err == nil {
		return false
	}
	event, _ := os.ReadFile(filepath.Join(root, name, "uevent"))
	for line := range strings.Lines(string(event)) {
		if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVTYPE="); ok {
			return !slices.Contains([]string{"bond", "team", "vlan", "macvlan", "ipvlan"}, kind)
		}
	}
	return true
}

// linkSpeed is the speed of an interface in Mb/s, as its driver says; 0: it does not.
func linkSpeed(name string) int {
	text, err := os.ReadFile(filepath.Join(networkDevices, name, "speed"))
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// interfaceOf is the interface that has an address; empty: none has.
func interfaceOf(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return ""
	}
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		list, _ := i.Addrs()
		for _, x := range list {
			if n, ok := x.(*net.IPNet); ok && n.IP.Equal(t.IP) {
				return i.Name
			}
		}
	}
	return ""
}
