package discover

import (
	"slices"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Fleet gives the GPUs as devices of a node, sorted by Index, and beside each
// the name by which its vendor's variables show it to a program (see
// [visible.For]). own says which processes are the caller's; nil means none.
//
// A GPU in MIG mode gives its instances instead of itself. Index is the
// driver's number; where that is not unique, with two vendors or with MIG
// instances, the devices are numbered in their order from 0.
func Fleet(gpus []GPU, own func(pid int) bool) ([]fleet.Device, []deviceenv.Device) {
	number := deviceNumbers(gpus)
	var devices []fleet.Device
	var names []deviceenv.Device
	for i, g := range gpus {
		d := fleetDevice(g, own)
		d.Index = number(i)
		if !g.MIG.Enabled {
			d.Links = fleetLinks(gpus, i, number)
			devices = append(devices, d)
			names = append(names, deviceenv.Device{Vendor: g.Vendor, Index: g.Index})
			continue
		}
		for k, m := range g.MIG.Instances {
			// Who holds which instance is not known: foreign use of the GPU
			// counts against each.
			d.Index, d.Parent = number(i)+k, g.UUID
			d.UUID, d.Profile, d.Memory = m.UUID, m.Profile, resource.Amount(m.MemoryBytes)
			devices = append(devices, d)
			names = append(names, deviceenv.Device{Vendor: g.Vendor, Index: g.Index, Instance: m.UUID})
		}
	}
	return devices, names
}

// deviceNumbers gives the first device number of the i-th GPU.
func deviceNumbers(gpus []GPU) func(i int) int {
	own := true
	for _, g := range gpus {
		own = own && g.Vendor == gpus[0].Vendor && !g.MIG.Enabled
	}
	return func(i int) int {
		if own {
			return gpus[i].Index
		}
		n := 0
		for _, g := range gpus[:i] {
			if g.MIG.Enabled {
				n += len(g.MIG.Instances)
			} else {
				n++
			}
		}
		return n
	}
}

func fleetDevice(g GPU, own func(pid int) bool) fleet.Device {
	d := fleet.Device{
		Minor: g.Minor, Kind: "gpu", Type: g.Type, UUID: g.UUID, Memory: resource.Amount(g.MemoryBytes),
		NUMA: g.NUMA, Bus: g.PCI, Declared: g.Vendor == Declared,
	}
	if held, _ := g.Held(own); held {
		d.Foreign = resource.Amount(g.foreignBytes(own))
	}
	return d
}

// foreignBytes is what others use of a GPU that is held, at least 1: how much
// cannot always be told.
func (g GPU) foreignBytes(own func(pid int) bool) int64 {
	var mine, theirs int64
	for _, p := range g.Processes {
		if own != nil && own(p.PID) {
			mine += max(p.MemoryBytes, 0)
		} else {
			theirs += max(p.MemoryBytes, 0)
		}
	}
	return max(g.UsedBytes-mine, theirs, 1)
}

// fleetLinks converts the links to peers that are devices themselves.
func fleetLinks(gpus []GPU, i int, number func(int) int) []fleet.Link {
	var out []fleet.Link
	for _, l := range gpus[i].Links {
		j := slices.IndexFunc(gpus, func(p GPU) bool { return p.Vendor == gpus[i].Vendor && p.Index == l.Peer })
		if j < 0 || gpus[j].MIG.Enabled {
			continue
		}
		f := fleet.Link{Peer: number(j), Kind: linkKinds[l.Path]}
		if l.Fabric > 0 {
			f.Kind, f.Lanes = fleet.LinkDirect, l.Fabric
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b fleet.Link) int { return a.Peer - b.Peer })
	return out
}

var linkKinds = map[Path]fleet.LinkKind{
	PathUnknown:    fleet.LinkUnknown,
	PathCrossNUMA:  fleet.LinkSystem,
	PathSameNUMA:   fleet.LinkNUMA,
	PathHostBridge: fleet.LinkHost,
	PathSwitch:     fleet.LinkSwitch,
}

// Shown returns how programs are told of a node's device, from the names that Fleet
// gave by Index. A declared device has no name but its number.
func Shown(names map[int]deviceenv.Device) func(fleet.Node, fleet.Device) deviceenv.Device {
	return func(_ fleet.Node, d fleet.Device) deviceenv.Device {
		if v, ok := names[d.Index]; ok && !d.Declared {
			return v
		}
		return deviceenv.Device{Vendor: deviceenv.Declared, Index: d.Index}
	}
}
