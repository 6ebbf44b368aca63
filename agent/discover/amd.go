package discover

import (
	"cmp"
	"slices"
)

// minAMDMemory parts graphics cards from the graphics inside a processor,
// which borrow main memory and are of no use for placing work.
const minAMDMemory = 4 << 30

// findAMD finds AMD's GPUs: by rocm-smi, else amd-smi, else from the driver's own
// files. Whoever names them, the driver's files complete them: kernel order,
// xGMI links, processes.
func (s *search) findAMD(bus pciBus) []GPU {
	onBus := bus.ofVendor(vendorAMD)
	driver := s.amdDevice()
	if !driver && len(onBus) == 0 {
		return nil
	}
	if !driver {
		s.addNote("amdgpu", "%d AMD GPUs on the PCI bus, but no compute driver (/dev/kfd): not used", len(onBus))
		return nil
	}
	nodes := s.findKFD()
	if len(nodes) == 0 && len(onBus) == 0 {
		return nil
	}
	found, ok := s.rocmSMI()
	if !ok {
		found, ok = s.amdSMI()
	}
	if !ok {
		found = s.amdFromDriver(nodes, onBus)
	}
	found = slices.DeleteFunc(found, func(g GPU) bool {
		small := g.MemoryBytes > 0 && g.MemoryBytes < minAMDMemory
		if small {
			s.addNote("amd", "%s (%s) has %d MiB of its own and counts as part of the processor: not used", g.Name, g.PCI, g.MemoryBytes>>20)
		}
		return small
	})
	s.applyKFD(found, nodes, bus)
	return found
}

// amdDevice tells whether AMD's compute driver is loaded.
func (s *search) amdDevice() bool {
	return s.fileExists("dev/kfd") || s.fileExists(kfdDir)
}

// amdFromDriver makes GPUs from sysfs alone.
func (s *search) amdFromDriver(nodes []kfdNode, onBus []pciDevice) []GPU {
	var out []GPU
	for _, d := range onBus {
		if !slices.ContainsFunc(nodes, func(n kfdNode) bool { return n.pci == d.address }) {
			s.addNote("amdgpu", "GPU %s does not compute: the driver does not list it", d.address)
			continue
		}
		dir := pciDir + d.address + "/"
		g := GPU{Vendor: AMD, Minor: -1, PCI: d.address, NUMA: -1}
		g.Name, _ = s.readText(dir + "product_name")
		g.MemoryBytes, _ = s.readNumber(dir + "mem_info_vram_total")
		g.UsedBytes, _ = s.readNumber(dir + "mem_info_vram_used")
		if id, ok := s.readText(dir + "unique_id"); ok {
			g.UUID = amdUUID(id)
		}
		out = append(out, g)
	}
	return out
}

// applyKFD numbers the GPUs in the kernel's order, which is what
// ROCR_VISIBLE_DEVICES counts, and adds what the driver's files tell.
func (s *search) applyKFD(gpus []GPU, nodes []kfdNode, bus pciBus) {
	place := func(g GPU) int {
		return slices.IndexFunc(nodes, func(n kfdNode) bool { return n.pci == g.PCI })
	}
	if len(nodes) > 0 && !slices.ContainsFunc(gpus, func(g GPU) bool { return place(g) < 0 }) {
		for i := range gpus {
			gpus[i].Index = place(gpus[i])
		}
	} else {
		slices.SortStableFunc(gpus, func(a, b GPU) int { return cmp.Compare(a.PCI, b.PCI) })
		for i := range gpus {
			gpus[i].Index = i
		}
	}
	for i := range gpus {
		g := &gpus[i]
		if t := amdTypes[bus[g.PCI].device]; t != "" {
			g.Type = t
		}
		at := place(*g)
		if at < 0 {
			continue
		}
		n := nodes[at]
		g.Minor = n.renderMinor
		g.Processes = append(g.Processes, s.kfdProcesses(n)...)
		for j := range gpus {
			if p := place(gpus[j]); j != i && p >= 0 && slices.Contains(n.xgmi, nodes[p].id) {
				g.Links = append(g.Links, Link{Peer: gpus[j].Index, Fabric: 1})
			}
		}
	}
}

// amdTypes names the accelerators by PCI device number, because the tools
// print the name of a family or of a board for some of them.
var amdTypes = map[int64]string{
	0x66a0: "mi50", 0x66a1: "mi50", 0x66a7: "mi50",
	0x738c: "mi100", 0x738e: "mi100",
	0x7408: "mi250x", 0x740c: "mi250", 0x740f: "mi210",
	0x74a0: "mi300a", 0x74a1: "mi300x", 0x74b5: "mi300x", 0x74a9: "mi300x",
	0x74a2: "mi308x", 0x74a5: "mi325x", 0x74b9: "mi325x",
	0x75a0: "mi350x", 0x75b0: "mi350x", 0x75a3: "mi355x", 0x75b3: "mi355x",
}
