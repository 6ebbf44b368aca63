package discover

import "strings"

// linkByPCI completes the links between the GPUs of one vendor: each gets one
// link to every other, with what tools said about it kept and the path read
// from the PCI tree where that is known.
func linkByPCI(gpus []GPU, bus pciBus, numaNodes int) {
	for i := range gpus {
		known := map[int]Link{}
		for _, l := range gpus[i].Links {
			known[l.Peer] = l
		}
		gpus[i].Links = nil
		for j := range gpus {
			if i == j {
				continue
			}
			l := known[gpus[j].Index]
			l.Peer = gpus[j].Index
			if p := pathBetween(gpus[i], gpus[j], bus, numaNodes); p != PathUnknown {
				l.Path = p
			}
			gpus[i].Links = append(gpus[i].Links, l)
		}
	}
}

// pathBetween compares the bridges above two devices.
func pathBetween(a, b GPU, bus pciBus, numaNodes int) Path {
	x, y := bus[a.PCI].way, bus[b.PCI].way
	if len(x) > 0 && len(y) > 0 {
		last := ""
		for i := 0; i < min(len(x), len(y)) && x[i] == y[i]; i++ {
			last = x[i]
		}
		switch {
		case strings.HasPrefix(last, "pci"):
			return PathHostBridge
		case last != "":
			return PathSwitch
		}
	}
	// No host bridge in common, or the tree cannot be read.
	known := a.NUMA >= 0 && b.NUMA >= 0
	switch {
	case known && a.NUMA != b.NUMA:
		return PathCrossNUMA
	case len(x) == 0 || len(y) == 0:
		return PathUnknown
	case known || numaNodes == 1:
		return PathSameNUMA
	default:
		return PathUnknown
	}
}
