package main

import "github.com/coxswain-sched/coxswain/agent/discover/probe"

const (
	maxLinks     = 36 // of one GPU, NVML's own bound
	p2pNVLink    = 2  // the question whether NVLink joins two GPUs
	remoteGPU    = 0
	remoteSwitch = 2
)

// nvlinks is what one GPU's links lead to.
type nvlinks struct {
	direct map[string]int // by the peer's PCI address, as NVML spells it
	other  int            // active, to a switch or to what is hidden from a guest
}

// countLinks counts the NVLinks between each two GPUs. Links to a switch reach all
// GPUs that NVML says are joined; the number is then the smaller of the two
// sides', as nvidia-smi topo shows it.
func (c *collector) countLinks() {
	if c.linkState == nil || len(c.handles) < 2 {
		return
	}
	of := make([]nvlinks, len(c.handles))
	for i, d := range c.handles {
		of[i] = c.readNVLinks(d)
	}
	for i := range of {
		g := &c.report.GPUs[i]
		for j := range of {
			if i == j {
				continue
			}
			n := of[i].direct[c.report.GPUs[j].PCI]
			if n == 0 && of[i].other > 0 && of[j].other > 0 && c.nvlinkConnected(c.handles[i], c.handles[j]) {
				n = min(of[i].other, of[j].other)
			}
			if n > 0 {
				g.Links = append(g.Links, probe.Link{Peer: c.report.GPUs[j].Index, Count: n})
			}
		}
	}
}

func (c *collector) readNVLinks(d device) nvlinks {
	l := nvlinks{direct: map[string]int{}}
	for link := range uint32(maxLinks) {
		var active uint32
		if c.linkState(d, link, &active) != success || active == 0 {
			continue
		}
		kind, known := c.remoteKind(d, link)
		var p pciInfo
		switch {
		case known && kind == remoteSwitch:
			l.other++
		case known && kind != remoteGPU && kind != unknownRemote:
			// a processor (POWER): no way to a peer
		case c.linkRemote != nil && c.linkRemote(d, link, &p) == success && c.isGPU(cString(p.busID[:])):
			l.direct[cString(p.busID[:])]++
		default:
			l.other++
		}
	}
	return l
}

const unknownRemote = 0xff

func (c *collector) remoteKind(d device, link uint32) (uint32, bool) {
	var kind uint32
	if c.linkType == nil || c.linkType(d, link, &kind) != success {
		return 0, false
	}
	return kind, true
}

func (c *collector) isGPU(address string) bool {
	for _, g := range c.report.GPUs {
		if g.PCI == address && address != "" {
			return true
		}
	}
	return false
}

// nvlinkConnected asks whether the driver moves data between two GPUs by NVLink.
func (c *collector) nvlinkConnected(a, b device) bool {
	var state uint32
	return c.p2p != nil && c.p2p(a, b, p2pNVLink, &state) == success && state == 0
}
