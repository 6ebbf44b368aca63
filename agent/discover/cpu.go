package discover

import "fmt"

// cpus lists the processors that are online and allowed. Affinity mask and
// cpuset both show in the status file of the process.
func (s *search) cpus() []CPU {
	online, known := s.list("sys/devices/system/cpu/online")
	allowed, limited := s.allowed("Cpus_allowed_list")
	ids := online
	switch {
	case known && limited:
		ids = intersect(online, allowed)
		if len(ids) < len(online) {
			s.note("affinity", "%d of %d CPUs may be used by this process", len(ids), len(online))
		}
	case limited:
		ids = allowed
	}
	if len(ids) == 0 {
		s.note("cpu", "neither sysfs nor procfs names the CPUs; %d taken from the runtime", s.NumCPU)
		for i := range s.NumCPU {
			ids = append(ids, i)
		}
	}
	out := make([]CPU, len(ids))
	for i, id := range ids {
		out[i] = s.cpu(id)
	}
	return out
}

// allowed reads a list field of this process's status file.
func (s *search) allowed(key string) ([]int, bool) {
	status, ok := s.text("proc/self/status")
	if !ok {
		return nil, false
	}
	v, ok := field(status, key)
	if !ok {
		return nil, false
	}
	l, err := parseList(v)
	return l, err == nil && len(l) > 0
}

// cpu reads where a processor sits. Without topology files each processor
// counts as a core of its own in socket 0.
func (s *search) cpu(id int) CPU {
	dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", id)
	c := CPU{ID: id, Core: id}
	core, ok := s.number(dir + "core_id")
	if !ok {
		return c
	}
	c.Core = int(core)
	// Some virtual machines and ARM boards say -1.
	if p, ok := s.number(dir + "physical_package_id"); ok && p > 0 {
		c.Socket = int(p)
	}
	return c
}
