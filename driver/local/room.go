package local

import (
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/discover"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// RoomConfig says how virtual nodes are named and addressed.
type RoomConfig struct {
	Naming Naming   // see FindNaming; empty: NamedByAddr
	Seed   string   // see AddressSeed: two rooms on one machine get different addresses
	Names  []string // host names that are wanted, by position; missing or empty: v1, v2 …

	// Address is the address of a node by its name, in a network of the nodes' own; nil: nodes have
	// addresses of the machine's 127.0.0.0/8.
	Address func(name string) string
}

// AddressSeed is the seed of the virtual nodes of an engine's root: the identity that is drawn when
// the root is made, so that two containers with roots at one path differ. A root that an older
// version made keeps old, the seed that it had.
func AddressSeed(root, old string) (string, error) { return attempt.AddressSeed(root, old) }

// NodeNames are the names of a room of n virtual nodes that are named.
func NodeNames(names []string, n int) []string {
	var out []string
	for _, v := range VirtualRoom(RoomConfig{Naming: NamedByRoot, Names: names}, make([]fleet.Node, n)) {
		out = append(out, v.Name)
	}
	return out
}

// VirtualRoom makes virtual nodes of this machine from descriptions of what each
// has, by giving them names and addresses. Without a network of their own addresses are in
// 127.0.0.0/8, which needs no set-up; the same seed gives the same ones. Where nodes cannot be named
// the address is the name.
func VirtualRoom(c RoomConfig, nodes []fleet.Node) []fleet.Node {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.Seed))
	sum := h.Sum32()
	second, third := 1+sum%254, sum/254%200 // never 127.0: localhost and Debian's own name are there
	out := slices.Clone(nodes)
	for i := range out {
		n := &out[i]
		n.Pool, n.Virtual = "local", true
		n.Address = fmt.Sprintf("127.%d.%d.%d", second, third+uint32(i/250), 1+i%250)
		switch {
		case c.Naming == NamedByAddr || c.Naming == "":
			n.Name = n.Address
		case i < len(c.Names) && c.Names[i] != "":
			n.Name = c.Names[i]
		default:
			n.Name = "v" + strconv.Itoa(i+1)
		}
		if c.Address != nil {
			n.Address = c.Address(n.Name)
		}
	}
	return out
}

// RealNode is this machine itself as the only node of a room: its own name, what
// its user may use of it, its own devices.
func RealNode(m discover.Machine, devices []fleet.Device) (fleet.Node, error) {
	name, err := os.Hostname()
	if err != nil {
		return fleet.Node{}, err
	}
	name, _, _ = strings.Cut(name, ".")
	return fleet.Node{
		Name: name, Pool: "local", State: fleet.Up, Address: name, Devices: devices,
		Capacity: MachineCapacity(m),
	}, nil
}

// MachineCapacity is what jobs can ask for of this machine, devices apart. Its scratch space is
// the file system of /tmp, as a whole: other users of it are not known.
func MachineCapacity(m discover.Machine) resource.Vector {
	v := resource.Vector{CPU: resource.CPUs(m.UsableCPUs()), Memory: resource.Amount(m.MemoryBytes)}
	var st unix.Statfs_t
	if err := unix.Statfs("/tmp", &st); err == nil {
		v.Disk = resource.Amount(st.Blocks * uint64(st.Bsize))
	}
	return v
}
