package local

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/resource"
)

// RoomConfig describes a room of alike virtual nodes.
type RoomConfig struct {
	Nodes    int
	GPUs     int             // declared devices of each node
	GPUType  string          // empty: "virtual"
	Memory   resource.Amount // bytes of memory of each device; zero: not said
	Capacity resource.Vector // of each node
	Parts    []string        // partitions that each node is in
	Naming   Naming          // see FindNaming; empty: NamedByAddr
	Seed     string          // the engine's state directory: two rooms on one machine get different addresses
}

// VirtualRoom returns virtual nodes of this machine: v1, v2 … where they can be
// named, else their addresses. Addresses are in 127.0.0.0/8, which needs no
// set-up; the same seed gives the same ones.
func VirtualRoom(c RoomConfig) []fleet.Node {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.Seed))
	sum := h.Sum32()
	second, third := 1+sum%254, sum/254%200 // never 127.0: localhost and Debian's own name are there
	nodes := make([]fleet.Node, c.Nodes)
	for i := range nodes {
		address := fmt.Sprintf("127.%d.%d.%d", second, third+uint32(i/250), 1+i%250)
		name := "v" + strconv.Itoa(i+1)
		if c.Naming == NamedByAddr || c.Naming == "" {
			name = address
		}
		nodes[i] = fleet.Node{
			Name: name, Pool: "local", State: fleet.Up, Address: address, Virtual: true,
			Parts: c.Parts, Capacity: c.Capacity, Sockets: 1, Devices: c.devices(),
		}
	}
	return nodes
}

// devices are linked directly, all with all.
func (c RoomConfig) devices() []fleet.Device {
	var out []fleet.Device
	for i := range c.GPUs {
		d := fleet.Device{
			Index: i, Minor: -1, Kind: "gpu", Type: cmp.Or(c.GPUType, "virtual"),
			UUID: "", Memory: c.Memory, NUMA: -1, Declared: true,
		}
		for peer := range c.GPUs {
			if peer != i {
				d.Links = append(d.Links, fleet.Link{Peer: peer, Kind: fleet.LinkDirect, Lanes: 1})
			}
		}
		out = append(out, d)
	}
	return out
}
