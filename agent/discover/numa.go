package discover

import (
	"fmt"
	"strconv"
	"strings"
)

// findNUMA lists the memory nodes and writes each processor's node into cpus.
// A kernel without NUMA gives one node 0 with everything.
func (s *search) findNUMA(cpus []CPU) []NUMANode {
	ids, ok := s.readList("sys/devices/system/node/online")
	if !ok || len(ids) == 0 {
		return []NUMANode{{ID: 0, CPUs: cpuIDs(cpus)}}
	}
	usable := cpuIDs(cpus)
	at := make(map[int]int, len(cpus))
	for i, c := range cpus {
		at[c.ID] = i
	}
	out := make([]NUMANode, 0, len(ids))
	for _, id := range ids {
		n := s.numaNode(id, usable)
		for _, c := range n.CPUs {
			cpus[at[c]].NUMA = id
		}
		out = append(out, n)
	}
	for i := range out {
		if len(out[i].Distance) != len(out) {
			out[i].Distance = nil // unknown, or offline nodes counted in
		}
	}
	return out
}

func (s *search) numaNode(id int, usable []int) NUMANode {
	dir := fmt.Sprintf("sys/devices/system/node/node%d/", id)
	n := NUMANode{ID: id, CPUs: []int{}}
	if l, ok := s.readList(dir + "cpulist"); ok {
		n.CPUs = intersectSorted(l, usable)
	}
	if t, ok := s.readText(dir + "meminfo"); ok {
		n.MemoryBytes = parseKilobytes(t, fmt.Sprintf("Node %d MemTotal", id))
	}
	if t, ok := s.readText(dir + "distance"); ok {
		for _, f := range strings.Fields(t) {
			d, err := strconv.Atoi(f)
			if err != nil {
				return n
			}
			n.Distance = append(n.Distance, d)
		}
	}
	return n
}

// parseKilobytes reads "key: 123 kB" and gives bytes; 0 where it is not there.
func parseKilobytes(text, key string) int64 {
	v, ok := findField(text, key)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(v, "kB")), 10, 64)
	if err != nil || n < 0 || n > maxInt64/1024 {
		return 0
	}
	return n * 1024
}

const maxInt64 = 1<<63 - 1

func cpuIDs(cpus []CPU) []int {
	out := make([]int, len(cpus))
	for i, c := range cpus {
		out[i] = c.ID
	}
	return out
}

// numaOf is the memory node of a device from its sysfs number. A machine
// with a single node often says -1, which can only mean that one.
func numaOf(raw int64, ok bool, nodes []NUMANode) int {
	if ok && raw >= 0 {
		return int(raw)
	}
	if len(nodes) == 1 {
		return nodes[0].ID
	}
	return -1
}
