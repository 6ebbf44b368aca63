package discover

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
)

// Vendor is who makes a GPU.
type Vendor = deviceenv.Vendor

// The vendors found, and the mark of devices that are only declared.
const (
	NVIDIA   = deviceenv.NVIDIA
	AMD      = deviceenv.AMD
	Declared = deviceenv.Declared
)

// GPU is one graphics processor.
type GPU struct {
	Vendor Vendor
	// Index is the number that the vendor's *_VISIBLE_DEVICES counts: for
	// NVIDIA the position by PCI address (CUDA_DEVICE_ORDER=PCI_BUS_ID), for
	// AMD the position in the kernel's order. It stays the machine's own
	// number where an inherited variable hides other GPUs.
	Index int
	// Minor is N of /dev/nvidiaN or of /dev/dri/renderDN; -1 means unknown.
	Minor       int
	UUID        string // "GPU-…"; empty means unknown
	Name        string // the vendor's product name
	Type        string // short name for asking, as [TypeName] makes it: "h100"
	MemoryBytes int64  // 0 means unknown
	UsedBytes   int64  // in use by anybody, without the driver's own reserve
	PCI         string // "0000:17:00.0"; empty means unknown
	NUMA        int    // ID of the memory node next to it; -1 means unknown
	MIG         MIG
	Processes   []Process // that hold it now, by PID, as far as visible
	// Links to every other GPU of the machine of the same vendor, by Peer.
	Links []Link
}

// MIG is the partitioning of an NVIDIA GPU. A GPU with Enabled set runs
// nothing itself; only its instances do.
type MIG struct {
	Enabled   bool
	Instances []Instance
}

// Instance is one MIG device.
type Instance struct {
	UUID        string // "MIG-…"
	Profile     string // "1g.10gb", "1c.3g.20gb"
	MemoryBytes int64  // 0 means unknown
}

// Process holds memory of a GPU.
type Process struct {
	PID         int    // in the namespace of the tool that saw it
	Name        string // empty means unknown
	MemoryBytes int64  // -1 means unknown
	Graphics    bool   // a display server or the like, not computing alone
}

// Link is how two GPUs of one machine reach each other.
type Link struct {
	Peer int // Index of the other GPU
	// Fabric is the number of direct links to the peer (NVLink, also through
	// NVSwitch; xGMI), 0 where there is none.
	Fabric int
	Path   Path // the way over PCI Express, also where Fabric is not 0
}

// Path is the way between two devices over PCI Express; a larger value is a
// shorter way.
type Path uint8

// The ways, from the longest.
const (
	PathUnknown    Path = iota
	PathCrossNUMA       // through the link between two NUMA nodes
	PathSameNUMA        // through two host bridges of one NUMA node
	PathHostBridge      // through one host bridge
	PathSwitch          // through PCIe switches alone
)

// String is a short word: "switch", "host-bridge", "numa", "cross-numa".
func (p Path) String() string {
	switch p {
	case PathSwitch:
		return "switch"
	case PathHostBridge:
		return "host-bridge"
	case PathSameNUMA:
		return "numa"
	case PathCrossNUMA:
		return "cross-numa"
	default:
		return "unknown"
	}
}

// String is "fabric ×18" for direct links, else the path.
func (l Link) String() string {
	if l.Fabric > 0 {
		return fmt.Sprintf("fabric ×%d", l.Fabric)
	}
	return l.Path.String()
}

// idleBytes is what may be in use on a free GPU: contexts of a display
// server and of monitoring, up to one sixteenth of the memory.
func idleBytes(total int64) int64 {
	return max(1<<30, total/16)
}

// mpsServer multiplexes the work of others and holds a context while idle.
const mpsServer = "nvidia-cuda-mps-server"

// Held tells whether others use the GPU so that it must not be given away,
// and who. own says which processes are the caller's; nil means none.
//
// A process that computes holds the GPU whatever its memory. A process that
// draws, and memory that no visible process explains (one in another
// container, say), hold it from 1 GiB or one sixteenth of the memory on,
// whichever is more.
func (g GPU) Held(own func(pid int) bool) (bool, string) {
	var mine, graphics int64
	for _, p := range g.Processes {
		switch {
		case own != nil && own(p.PID):
			mine += max(p.MemoryBytes, 0)
		case p.Graphics, p.Name == mpsServer:
			graphics += max(p.MemoryBytes, 0)
		default:
			return true, p.String()
		}
	}
	if limit := idleBytes(g.MemoryBytes); g.UsedBytes-mine > limit {
		if graphics > limit {
			return true, fmt.Sprintf("processes that draw hold %d MiB", graphics>>20)
		}
		return true, fmt.Sprintf("%d MiB in use by processes that cannot be seen from here", (g.UsedBytes-mine-graphics)>>20)
	}
	return false, ""
}

// String is "process 4711 (python3) holds 512 MiB".
func (p Process) String() string {
	name, holds := "", "uses it"
	if p.Name != "" {
		name = " (" + p.Name + ")"
	}
	if p.MemoryBytes >= 0 {
		holds = fmt.Sprintf("holds %d MiB", p.MemoryBytes>>20)
	}
	return fmt.Sprintf("process %d%s %s", p.PID, name, holds)
}

// DeclaredGPUs makes count devices that exist by declaration only, numbered
// from 0, for a machine without GPUs. They have no address and no links.
func DeclaredGPUs(typ string, count int, memoryBytes int64) []GPU {
	out := make([]GPU, max(count, 0))
	for i := range out {
		out[i] = GPU{Vendor: Declared, Index: i, Minor: -1, Type: typ, MemoryBytes: memoryBytes, NUMA: -1}
	}
	return out
}

// findGPUs looks for GPUs of every vendor and completes them from sysfs.
func (s *search) findGPUs(nodes []NUMANode) []GPU {
	bus := s.findPCI(nodes)
	if bus != nil && len(bus) == 0 && !s.nvidiaDevice() && !s.amdDevice() {
		s.addNote("gpu", "no NVIDIA or AMD GPU on the PCI bus")
		return nil
	}
	var out []GPU
	for _, find := range []func(bus pciBus) []GPU{s.findNVIDIA, s.findAMD} {
		found := find(bus)
		for i := range found {
			s.completeGPU(&found[i], bus, nodes)
		}
		sortGPUs(found)
		linkByPCI(found, bus, len(nodes))
		out = append(out, found...)
	}
	return s.dropHiddenGPUs(out)
}

func sortGPUs(gpus []GPU) {
	slices.SortStableFunc(gpus, func(a, b GPU) int { return cmp.Compare(a.Index, b.Index) })
	for i := range gpus {
		slices.SortStableFunc(gpus[i].Processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	}
}

// completeGPU fills what the tools leave open.
func (s *search) completeGPU(g *GPU, bus pciBus, nodes []NUMANode) {
	if d, ok := bus[g.PCI]; ok && d.numa >= 0 {
		g.NUMA = d.numa
	}
	if g.NUMA < 0 {
		g.NUMA = numaOf(-1, false, nodes)
	}
	if g.Type == "" {
		g.Type = TypeName(g.Name)
	}
}
