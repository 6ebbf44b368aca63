package nodecheck

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// xidAge is how long a fault in the kernel's log speaks against a device. A device that does not recover
// writes further ones, or fails another test.
const xidAge = 10 * time.Minute

// hardwareXids are the faults that are the device's and not those of a program on it (NVIDIA's catalogue of
// XIDs; its device plugin leaves out the others too).
var hardwareXids = []int{48, 62, 64, 74, 79, 92, 95, 110, 119, 120, 136, 140, 143, 148, 149, 154, 158}

// checkDevices says of each device whether it is there, answers, and is what it was when the server
// began. Devices that a configuration declares are no hardware.
func (c *Checker) checkDevices(ctx context.Context, n *fleet.Node) []fleet.CheckResult {
	var there []fleet.Device
	nvidia := false
	for _, d := range n.Devices {
		if !d.Declared {
			there = append(there, d)
			nvidia = nvidia || isNVIDIA(&d)
		}
	}
	if len(there) == 0 {
		return []fleet.CheckResult{{Verdict: fleet.Passed, Text: "there are no devices to look at"}}
	}
	seen := c.askDevices(ctx, there, nvidia)
	out := make([]fleet.CheckResult, 0, len(there))
	for i := range there {
		d := &there[i]
		v, text := c.judgeDevice(d, seen, i)
		if v == fleet.Passed && isNVIDIA(d) && seen.xidErr != nil {
			text += "; XIDs were not looked at: " + c.lateText("the kernel's log", seen.xidErr)
		}
		out = append(out, fleet.CheckResult{Device: &d.Index, UUID: d.UUID, Verdict: v, Text: text})
	}
	return out
}

func isNVIDIA(d *fleet.Device) bool {
	return strings.HasPrefix(d.UUID, "GPU-") && d.Kind == "gpu" || strings.HasPrefix(d.UUID, "MIG-")
}

// devicesSeen is what the machine says of devices.
type devicesSeen struct {
	report  probe.Report
	failed  error // there is no report
	xids    []Xid
	xidErr  error
	headers [][]byte // of each device with a bus
	busErrs []error
}

// askDevices asks for all at the same time: what gives no answer takes no time from the others.
func (c *Checker) askDevices(ctx context.Context, there []fleet.Device, nvidia bool) *devicesSeen {
	seen := &devicesSeen{headers: make([][]byte, len(there)), busErrs: make([]error, len(there))}
	var running sync.WaitGroup
	if nvidia {
		running.Go(func() {
			seen.report, seen.failed = callOnce(ctx, &c.stuck, "gpus", func() (probe.Report, error) { return c.cfg.Machine.GPUs(ctx) })
		})
		running.Go(func() {
			seen.xids, seen.xidErr = callOnce(ctx, &c.stuck, "xids", func() ([]Xid, error) { return c.cfg.Machine.Xids(c.cfg.Machine.Now().Add(-xidAge)) })
		})
	}
	for i := range there {
		if bus := there[i].Bus; bus != "" {
			running.Go(func() {
				seen.headers[i], seen.busErrs[i] = callOnce(ctx, &c.stuck, "bus "+bus, func() ([]byte, error) { return c.cfg.Machine.Bus(bus) })
			})
		}
	}
	running.Wait()
	return seen
}

// judgeDevice is the first thing that is wrong with a device, the i-th of those that were asked.
func (c *Checker) judgeDevice(d *fleet.Device, seen *devicesSeen, i int) (fleet.Verdict, string) {
	report, failed := &seen.report, seen.failed
	if d.Bus != "" {
		head, err := seen.headers[i], seen.busErrs[i]
		switch {
		case errors.Is(err, errLate):
			return fleet.Failed, c.lateText("PCI device "+d.Bus, err)
		case errors.Is(err, fs.ErrNotExist):
			return fleet.Failed, "PCI device " + d.Bus + " is gone"
		case err == nil && len(head) > 1 && head[0] == 0xff && head[1] == 0xff:
			return fleet.Failed, "PCI device " + d.Bus + " does not answer: it has fallen off the bus"
		}
	}
	for _, x := range slices.Backward(seen.xids) {
		if d.Bus != "" && sameBus(x.Bus, d.Bus) && slices.Contains(hardwareXids, x.Code) {
			return fleet.Failed, fmt.Sprintf("XID %d at %s: %s", x.Code, x.At.UTC().Format("15:04:05Z"), x.Text)
		}
	}
	if !isNVIDIA(d) {
		return fleet.Passed, "it is on the bus"
	}
	switch {
	case errors.Is(failed, errLate):
		return fleet.Failed, c.lateText("the driver", failed)
	case failed != nil:
		return fleet.Failed, "the driver gives no answer: " + shortText(failed.Error())
	case report.Error != nil && (report.Error.Kind == probe.NoDriver || report.Error.Kind == probe.Failed):
		return fleet.Failed, report.Error.Text
	case report.Error != nil:
		return fleet.Unsure, report.Error.Text
	case d.Profile != "":
		return judgeInstance(d, report)
	}
	at := slices.IndexFunc(report.GPUs, func(g probe.GPU) bool { return g.UUID == d.UUID })
	if at < 0 {
		return fleet.Failed, d.UUID + " is not among the devices of the driver" + problemsText(report)
	}
	return judgeGPU(d, &report.GPUs[at])
}

// problemsText is what the driver could not be asked.
func problemsText(r *probe.Report) string {
	if len(r.Problems) == 0 {
		return ""
	}
	return ": " + shortText(strings.Join(r.Problems, "; "))
}

// judgeGPU judges a whole device.
func judgeGPU(d *fleet.Device, g *probe.GPU) (fleet.Verdict, string) {
	switch {
	case g.MIG:
		return fleet.Failed, "MIG mode was turned on: as a whole it runs nothing. Restart the server to use its instances, or turn MIG off"
	case g.Prohibited:
		return fleet.Failed, "its compute mode is prohibited"
	}
	if v, text := judgeMemory(g); v != fleet.Passed {
		return v, text
	}
	switch {
	case g.MemoryBytes > 0 && d.Memory > 0 && g.MemoryBytes < int64(d.Memory)/8*7:
		return fleet.Failed, fmt.Sprintf("it has %s of memory, and had %s when the server began", sizeText(g.MemoryBytes), sizeText(int64(d.Memory)))
	case g.Exclusive:
		return fleet.Warned, "its compute mode is exclusive: jobs that share it fail"
	}
	return fleet.Passed, "it answers"
}

// judgeMemory looks at what the device counts of its memory.
func judgeMemory(g *probe.GPU) (fleet.Verdict, string) {
	m := g.Errors
	switch {
	case m == nil:
		return fleet.Passed, ""
	case m.Uncorrected > 0:
		return fleet.Failed, fmt.Sprintf("%d uncorrectable memory errors since the driver was loaded", m.Uncorrected)
	case m.RemapFailed:
		return fleet.Failed, "a bad row of its memory could not be remapped"
	case m.RemapPending:
		return fleet.Warned, "rows of its memory are remapped at the next reset of the device"
	}
	return fleet.Passed, ""
}

// judgeInstance judges a MIG instance.
func judgeInstance(d *fleet.Device, r *probe.Report) (fleet.Verdict, string) {
	at := slices.IndexFunc(r.GPUs, func(g probe.GPU) bool { return g.UUID == d.Parent || d.Parent == "" && hasInstance(&g, d.UUID) })
	switch {
	case at < 0:
		return fleet.Failed, "the device of MIG instance " + d.UUID + " is not among the devices of the driver" + problemsText(r)
	case !r.GPUs[at].MIG:
		return fleet.Failed, "MIG mode was turned off: the instance is gone. Restart the server to use the device as a whole, or turn MIG on"
	case !hasInstance(&r.GPUs[at], d.UUID):
		return fleet.Failed, "MIG instance " + d.UUID + " is gone: the device was partitioned anew. Restart the server to use its new instances"
	}
	if v, text := judgeMemory(&r.GPUs[at]); v != fleet.Passed {
		return v, text
	}
	return fleet.Passed, "it is there"
}

func hasInstance(g *probe.GPU, uuid string) bool {
	return slices.ContainsFunc(g.Instances, func(i probe.MIG) bool { return i.UUID == uuid })
}

// sameBus compares PCI addresses, whose domain has four digits or eight, and whose function may be left
// out.
func sameBus(a, b string) bool {
	short := func(s string) string {
		s, _, _ = strings.Cut(strings.ToLower(s), ".")
		parts := strings.Split(s, ":")
		if len(parts) == 3 {
			parts[0] = strings.TrimLeft(parts[0], "0")
		}
		return strings.Join(parts, ":")
	}
	return short(a) == short(b)
}

// parseXid reads a record of the kernel's log: "6,339,5140900,-;NVRM: Xid (PCI:0000:17:00): 79, pid=…". Its
// time counts in microseconds since the machine began. A record that only holds such words is none: the
// kernel writes the names of programs and files, which are any user's, and programs write records too.
func parseXid(record string, booted time.Time) (Xid, bool) {
	head, text, ok := strings.Cut(record, ";")
	if !ok {
		return Xid{}, false
	}
	rest, ok := strings.CutPrefix(text, "NVRM: Xid (PCI:")
	if !ok {
		return Xid{}, false
	}
	bus, rest, ok := strings.Cut(rest, "): ")
	if !ok || !isBus(bus) {
		return Xid{}, false
	}
	number, _, _ := strings.Cut(rest, ",")
	code, err := strconv.Atoi(strings.TrimSpace(number))
	fields := strings.Split(head, ",")
	if err != nil || len(fields) < 3 {
		return Xid{}, false
	}
	if level, err := strconv.ParseUint(fields[0], 10, 32); err != nil || level > 7 {
		return Xid{}, false // above 7 it names a facility that is not the kernel
	}
	micros, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return Xid{}, false
	}
	line, _, _ := strings.Cut(rest, "\n")
	return Xid{At: booted.Add(time.Duration(micros) * time.Microsecond), Bus: bus, Code: code, Text: shortText(line)}, true
}

// isBus reports whether text is a PCI address as the driver writes it: 0000:17:00, or with a function.
func isBus(text string) bool {
	address, function, more := strings.Cut(text, ".")
	if more && (len(function) != 1 || !isHex(function)) {
		return false
	}
	parts := strings.Split(address, ":")
	return len(parts) == 3 && (len(parts[0]) == 4 || len(parts[0]) == 8) && len(parts[1]) == 2 && len(parts[2]) == 2 && isHex(strings.Join(parts, ""))
}

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdefABCDEF") == "" }
