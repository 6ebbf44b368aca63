package discover

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

const kfdDir = "sys/class/kfd/kfd"

// xGMI in the driver's numbering of link types; 2 is PCI Express.
const kfdXGMI = 11

// kfdNode is one GPU in the compute driver's topology.
type kfdNode struct {
	id          int // number of the topology node, CPUs counted in
	gpuID       string
	pci         string
	renderMinor int   // N of /dev/dri/renderDN; -1 unknown
	xgmi        []int // ids of the nodes linked by xGMI
}

// findKFD lists the GPUs of the compute driver in its order.
func (s *search) findKFD() []kfdNode {
	var out []kfdNode
	dir := kfdDir + "/topology/nodes"
	for _, name := range s.listNames(dir) {
		id, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		gpuID, ok := s.readText(path.Join(dir, name, "gpu_id"))
		if !ok || gpuID == "" || gpuID == "0" { // a CPU
			continue
		}
		text, ok := s.readText(path.Join(dir, name, "properties"))
		if !ok {
			continue // kept from this process by its cgroup
		}
		p := parseProperties(text)
		n := kfdNode{id: id, gpuID: gpuID, renderMinor: -1, pci: kfdAddress(p["domain"], p["location_id"])}
		if m := p["drm_render_minor"]; m > 0 {
			n.renderMinor = int(m)
		}
		for _, links := range []string{"io_links", "p2p_links"} {
			for _, l := range s.listNames(path.Join(dir, name, links)) {
				t, _ := s.readText(path.Join(dir, name, links, l, "properties"))
				if q := parseProperties(t); q["type"] == kfdXGMI {
					n.xgmi = append(n.xgmi, int(q["node_to"]))
				}
			}
		}
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b kfdNode) int { return a.id - b.id })
	return out
}

// parseProperties reads lines of "key number".
func parseProperties(text string) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
			out[f[0]] = n
		}
	}
	return out
}

// kfdAddress unpacks bus, device and function.
func kfdAddress(domain, location int64) string {
	return fmt.Sprintf("%04x:%02x:%02x.%d", domain, location>>8&0xff, location>>3&0x1f, location&7)
}

// kfdProcesses lists the processes that hold memory of a GPU.
func (s *search) kfdProcesses(n kfdNode) []Process {
	var out []Process
	for _, name := range s.listNames(kfdDir + "/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		bytes, ok := s.readNumber(kfdDir + "/proc/" + name + "/vram_" + n.gpuID)
		if !ok || bytes <= 0 {
			continue
		}
		p := Process{PID: pid, MemoryBytes: bytes}
		p.Name, _ = s.readText("proc/" + name + "/comm")
		out = append(out, p)
	}
	return out
}
