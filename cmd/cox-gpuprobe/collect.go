package main

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
)

// collectReport asks everything. What fails for one GPU becomes a problem and does
// not spoil the rest.
func collectReport(l *nvml) probe.Report {
	c := &collector{nvml: l, report: probe.Report{Version: probe.Version, GPUs: []probe.GPU{}}}
	if st := l.init(); st != success {
		c.report.Error = &probe.Error{Kind: probe.NoDriver, Text: "NVML does not start: " + st.String()}
		return c.report
	}
	defer l.shutdown()
	if l.driver != nil {
		c.report.Driver = readText(l.driver)
	}
	var n uint32
	if st := l.count(&n); st != success {
		c.report.Error = &probe.Error{Kind: probe.Failed, Text: "NVML does not count the GPUs: " + st.String()}
		return c.report
	}
	for i := range n {
		c.collectGPU(i)
	}
	c.countLinks()
	return c.report
}

type collector struct {
	*nvml
	report  probe.Report
	handles []device // beside report.GPUs
}

func (c *collector) addProblem(format string, args ...any) {
	c.report.Problems = append(c.report.Problems, fmt.Sprintf(format, args...))
}

func (c *collector) collectGPU(i uint32) {
	var d device
	if st := c.byIndex(i, &d); st != success {
		c.addProblem("GPU %d: %v", i, st)
		return
	}
	g := probe.GPU{Index: int(i), Minor: -1}
	g.UUID = readText(func(b *byte, n uint32) status { return c.uuid(d, b, n) })
	g.Name = readText(func(b *byte, n uint32) status { return c.name(d, b, n) })
	st := c.readMemory(d, &g)
	if g.UUID == "" && st == gpuLost {
		c.addProblem("GPU %d: %v", i, st)
		return
	}
	var n uint32
	if c.minor != nil && c.minor(d, &n) == success {
		g.Minor = int(n)
	}
	var p pciInfo
	if c.pci != nil && c.pci(d, &p) == success {
		g.PCI = cString(p.busID[:])
	}
	if c.mode != nil && c.mode(d, &n) == success {
		g.Prohibited, g.Exclusive = n == 2, n == 1 || n == 3
	}
	g.Errors = c.readErrors(d)
	g.Processes = c.listProcesses(d)
	c.listMIG(d, &g)
	c.report.GPUs = append(c.report.GPUs, g)
	c.handles = append(c.handles, d)
}

// readMemory asks the form that tells the driver's reserve apart, else the older.
func (c *collector) readMemory(d device, g *probe.GPU) status {
	if c.memory2 != nil {
		m := memoryV2{version: versionOfMemoryV2}
		if c.memory2(d, &m) == success {
			g.MemoryBytes, g.UsedBytes = clampInt64(m.total), clampInt64(m.used)
			return success
		}
	}
	var m memoryV1
	st := c.memory1(d, &m)
	if st == success {
		g.MemoryBytes, g.UsedBytes = clampInt64(m.total), clampInt64(m.used)
	} else if st != notSupported {
		c.addProblem("GPU %d: memory: %v", g.Index, st)
	}
	return st
}

// Which errors are counted, in NVML's enumerations.
const (
	eccUncorrected = 1 // nvmlMemoryErrorType_t
	eccVolatile    = 0 // nvmlEccCounterType_t: since the driver was loaded
)

// readErrors asks what the GPU counts of its memory; nil: it counts nothing, as one without ECC.
func (c *collector) readErrors(d device) *probe.Errors {
	var out probe.Errors
	counts := false
	var n uint64
	if c.eccErrors != nil && c.eccErrors(d, eccUncorrected, eccVolatile, &n) == success {
		out.Uncorrected, counts = clampInt64(n), true
	}
	var corrected, uncorrected, pending, failed uint32
	if c.remappedRows != nil && c.remappedRows(d, &corrected, &uncorrected, &pending, &failed) == success {
		out.RemapPending, out.RemapFailed, counts = pending != 0, failed != 0, true
	}
	if !counts {
		return nil
	}
	return &out
}

// clampInt64 turns what does not fit, as "all bits set" for unknown, into 0.
func clampInt64(n uint64) int64 {
	if n > 1<<62 {
		return 0
	}
	return int64(n)
}

// listProcesses lists who computes and who draws; one that does both draws, as a
// display server does.
func (c *collector) listProcesses(d device) []probe.Process {
	var out []probe.Process
	for _, kind := range []struct {
		list     func(device, *uint32, *processInfo) status
		graphics bool
	}{{c.compute, false}, {c.graphics, true}} {
		for _, p := range listRunning(kind.list, d) {
			q := probe.Process{PID: int(p.pid), MemoryBytes: -1, Graphics: kind.graphics}
			if p.used <= 1<<62 {
				q.MemoryBytes = int64(p.used)
			}
			at := slices.IndexFunc(out, func(o probe.Process) bool { return o.PID == q.PID })
			if at >= 0 && kind.graphics {
				out[at].Graphics = true
				continue
			}
			if c.processName != nil {
				q.Name = baseName(readText(func(b *byte, n uint32) status { return c.processName(p.pid, b, n) }))
			}
			out = append(out, q)
		}
	}
	return out
}

// listRunning asks a list whose length may grow between two questions.
func listRunning(list func(device, *uint32, *processInfo) status, d device) []processInfo {
	if list == nil {
		return nil
	}
	room := uint32(64)
	for range 4 {
		buf := make([]processInfo, room)
		n := room
		switch list(d, &n, &buf[0]) {
		case success:
			return buf[:min(n, room)]
		case insufficient:
			room = min(max(2*room, n+16), 1<<16)
		default:
			return nil
		}
	}
	return nil
}

// baseName is the program's name out of a path or a command line.
func baseName(command string) string {
	end := len(command)
	for i := range len(command) {
		if command[i] == ' ' {
			end = i
			break
		}
	}
	start := 0
	for i := range end {
		if command[i] == '/' {
			start = i + 1
		}
	}
	return command[start:end]
}

// listMIG lists the instances of a GPU that is partitioned.
func (c *collector) listMIG(d device, g *probe.GPU) {
	var now, later, slots uint32
	if c.migMode == nil || c.migMode(d, &now, &later) != success || now == 0 {
		return
	}
	g.MIG = true
	if c.migCount == nil || c.migByIndex == nil || c.migCount(d, &slots) != success {
		c.addProblem("GPU %d is in MIG mode and its instances cannot be listed", g.Index)
		return
	}
	for i := range slots {
		var m device
		if c.migByIndex(d, i, &m) != success {
			continue // an empty slot
		}
		g.Instances = append(g.Instances, c.readInstance(m))
	}
}

func (c *collector) readInstance(m device) probe.MIG {
	out := probe.MIG{GPUInstance: -1, ComputeInstance: -1}
	out.UUID = readText(func(b *byte, n uint32) status { return c.uuid(m, b, n) })
	out.Name = readText(func(b *byte, n uint32) status { return c.name(m, b, n) })
	var id uint32
	if c.gpuInstance != nil && c.gpuInstance(m, &id) == success {
		out.GPUInstance = int(id)
	}
	if c.computeInstance != nil && c.computeInstance(m, &id) == success {
		out.ComputeInstance = int(id)
	}
	var a attributes
	if c.attributes != nil && c.attributes(m, &a) == success {
		out.GPUSlices, out.ComputeSlices = int(a.gpuSlices), int(a.computeSlices)
		out.MemoryBytes = clampInt64(a.memoryMiB << 20)
	}
	return out
}
