package local

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/coxswain-sched/coxswain/fleet"
)

// RoomConfig says how virtual nodes are named and addressed.
type RoomConfig struct {
	Naming Naming   // see FindNaming; empty: NamedByAddr
	Seed   string   // the engine's state directory: two rooms on one machine get different addresses
	Names  []string // host names that are wanted, by position; missing or empty: v1, v2 …
}

// VirtualRoom makes virtual nodes of this machine from descriptions of what each
// has, by giving them names and addresses. Addresses are in 127.0.0.0/8, which
// needs no set-up; the same seed gives the same ones. Where nodes cannot be named
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
	}
	return out
}

// Declared returns n devices of a type that stand for hardware which is not
// there, each linked directly to every other.
func Declared(n int, typ string) []fleet.Device {
	var out []fleet.Device
	for i := range n {
		d := fleet.Device{Index: i, Minor: -1, Kind: "gpu", Type: typ, NUMA: -1, Declared: true}
		for peer := range n {
			if peer != i {
				d.Links = append(d.Links, fleet.Link{Peer: peer, Kind: fleet.LinkDirect, Lanes: 1})
			}
		}
		out = append(out, d)
	}
	return out
}
