package discover

import "fmt"

// findCPUs lists the processors that are online and allowed. Affinity mask and
// cpuset both show in the status file of the process.
func (s *search) findCPUs() []CPU {
	online, known := s.readList("sys/devices/system/cpu/online")
	allowed, limited := s.allowedList("Cpus_allowed_list")
	ids := online
	switch {
	case known && limited:
		ids = intersectSorted(online, allowed)
		if len(ids) < len(online) {
			s.addNote("affinity", "%d of %d CPUs may be used by this process", len(ids), len(online))
		}
	case limited:
		ids = allowed
	}
	if len(ids) == 0 {
		s.addNote("cpu", "neither sysfs nor procfs names the CPUs; %d taken from the runtime", s.NumCPU)
		for i := range s.NumCPU {
			ids = append(ids, i)
		}
	}
	out := make([]CPU, len(ids))
	for i, id := range ids {
		out[i] = s.readCPU(id)
	}
	return out
}

// allowedList reads a list field of this process's status file.
func (s *search) allowedList(key string) ([]int, bool) {
	status, ok := s.readText("proc/self/status")
	if !ok {
		return nil, false
	}
	v, ok := findField(status, key)
	if !ok {
		return nil, false
	}
	l, err := parseList(v)
	return l, err == nil && len(l) > 0
}

// readCPU reads where a processor sits. Without topology files each processor
// counts as a core of its own in socket 0.
func (s *search) readCPU(id int) CPU {
	dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", id)
	c := CPU{ID: id, Core: id}
	core, ok := s.readNumber(dir + "core_id")
	if !ok {
		return c
	}
	c.Core = int(core)
	// Some virtual machines and ARM boards say -1.
	if p, ok := s.readNumber(dir + "physical_package_id"); ok && p > 0 {
		c.Socket = int(p)
	}
	return c
}
