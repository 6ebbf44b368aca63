package nodecheck

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Machine is how a Checker sees the machine. A function that is nil is this machine's own.
type Machine struct {
	Space   func(path string) (Space, error)
	Memory  func() (MemoryState, error)
	Clock   func() (ClockState, error)
	Mounted func(path string) (bool, error)
	// GPUs asks NVIDIA's management library; an error says that it gave no answer.
	GPUs func(context.Context) (probe.Report, error)
	// Bus reads the first bytes of a PCI device's configuration.
	Bus func(address string) ([]byte, error)
	// Xids lists what the kernel's log says of faults of NVIDIA's devices since a time.
	Xids func(since time.Time) ([]Xid, error)
	// Run runs a program of the site to its end.
	Run func(*exec.Cmd) error
	Now func() time.Time
}

// Space is what a file system has left.
type Space struct {
	Free        int64 // bytes, for users that are not root
	Inodes      int64 // -1: it does not count them
	InodesTotal int64
	ReadOnly    bool
}

// MemoryState is the state of the main memory.
type MemoryState struct {
	Available     int64 // bytes that a program could have without swapping
	Uncorrectable int64 // errors that the memory controller could not correct, since the machine began
}

// ClockState is how good the clock is.
type ClockState struct {
	Synchronized bool
	Error        time.Duration // at most, as the kernel reckons it
}

// Xid is a fault that the driver of an NVIDIA device wrote into the kernel's log.
type Xid struct {
	At   time.Time
	Bus  string // PCI address
	Code int
	Text string
}

func sizeText(n int64) string { return resource.FormatBytes(resource.Amount(n)) }

func (c *Checker) spaceOf(ctx context.Context, path string) (Space, error) {
	return callOnce(ctx, &c.stuck, "space "+path, func() (Space, error) { return c.cfg.Machine.Space(path) })
}

func (c *Checker) checkDisk(ctx context.Context, k *Check, path string) fleet.CheckResult {
	s, err := c.spaceOf(ctx, path)
	switch {
	case err != nil:
		return fleet.CheckResult{Verdict: fleet.Failed, Text: c.lateText(path, err)}
	case s.ReadOnly:
		return fleet.CheckResult{Verdict: fleet.Failed, Text: path + " is read-only"}
	case s.Free < k.Free:
		return fleet.CheckResult{Verdict: fleet.Failed, Text: fmt.Sprintf("%s has %s free, less than %s", path, sizeText(s.Free), sizeText(k.Free))}
	case s.InodesTotal > 0 && s.Inodes < s.InodesTotal/200:
		return fleet.CheckResult{Verdict: fleet.Failed, Text: fmt.Sprintf("%s has room for %d more files, less than 0.5 %% of %d", path, s.Inodes, s.InodesTotal)}
	}
	return fleet.CheckResult{Verdict: fleet.Passed, Text: fmt.Sprintf("%s has %s free", path, sizeText(s.Free))}
}

func (c *Checker) checkMount(ctx context.Context, _ *Check, path string) fleet.CheckResult {
	mounted, err := callOnce(ctx, &c.stuck, "mounted "+path, func() (bool, error) { return c.cfg.Machine.Mounted(path) })
	switch {
	case err != nil:
		return fleet.CheckResult{Verdict: fleet.Failed, Text: c.lateText(path, err)}
	case !mounted:
		return fleet.CheckResult{Verdict: fleet.Failed, Text: "nothing is mounted at " + path}
	}
	if _, err := c.spaceOf(ctx, path); err != nil {
		return fleet.CheckResult{Verdict: fleet.Failed, Text: c.lateText(path, err)}
	}
	return fleet.CheckResult{Verdict: fleet.Passed, Text: path + " is mounted and answers"}
}

func (c *Checker) checkMemory(ctx context.Context, k *Check) fleet.CheckResult {
	switch m, err := callOnce(ctx, &c.stuck, "memory", c.cfg.Machine.Memory); {
	case err != nil:
		return fleet.CheckResult{Verdict: fleet.Unsure, Text: c.lateText("the state of the memory", err)}
	case m.Uncorrectable > 0:
		return fleet.CheckResult{Verdict: fleet.Failed, Text: fmt.Sprintf("%d uncorrectable errors of the main memory since the machine began", m.Uncorrectable)}
	case m.Available < k.Free:
		return fleet.CheckResult{Verdict: fleet.Failed, Text: fmt.Sprintf("%s of memory are available, less than %s", sizeText(m.Available), sizeText(k.Free))}
	default:
		return fleet.CheckResult{Verdict: fleet.Passed, Text: sizeText(m.Available) + " of memory are available"}
	}
}

func (c *Checker) checkClock(ctx context.Context, k *Check) fleet.CheckResult {
	switch s, err := callOnce(ctx, &c.stuck, "clock", c.cfg.Machine.Clock); {
	case err != nil:
		return fleet.CheckResult{Verdict: fleet.Unsure, Text: c.lateText("the state of the clock", err)}
	case !s.Synchronized:
		return fleet.CheckResult{Verdict: fleet.Failed, Text: "the clock is not synchronized: no time service keeps it"}
	case k.Within > 0 && s.Error > k.Within:
		return fleet.CheckResult{Verdict: fleet.Failed, Text: fmt.Sprintf("the clock may be off by %s, more than %s", s.Error.Round(time.Millisecond), k.Within)}
	default:
		return fleet.CheckResult{Verdict: fleet.Passed, Text: fmt.Sprintf("the clock is off by at most %s", s.Error.Round(time.Millisecond))}
	}
}
