package report

import "github.com/coxswain-sched/coxswain/model/rusage"

// addUse adds what was measured of an attempt, the part of it that is in the window.
func (s *sums) addUse(a *Attempt, in span) {
	u := a.Used
	if u == nil {
		return
	}
	if n := float64(u.GPUs.Count); n > 0 {
		// A device of which a part is held is measured whole: at most what is held can be used.
		measured := min(n, a.Held.GPUs()) * in.held / hour
		s.gpuMeasured += measured
		s.gpuUsed += measured * min(u.GPUs.Busy, 100) / 100
	}
	if u.Total.Has(rusage.CPU) {
		s.cpuMeasured += a.Held.CPUs * in.held / hour
		s.cpuUsed += u.Total.CPUTime().Hours() * in.part
	}
	if u.Total.Has(rusage.Memory) && a.Held.Memory > 0 {
		s.memoryMeasured += float64(a.Held.Memory) / gib * in.held / hour
		s.memoryPeak += float64(u.Total.Memory) / gib * in.held / hour
	}
}
