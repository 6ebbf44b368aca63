package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime is the CPU time of every process that was ever in the group or below it, in user mode
// and in the kernel. Every group of v2 counts it, with or without the cpu controller; ok is false
// without v2.
func (g *Group) CPUTime() (user, system time.Duration, ok bool) {
	if g.unified == "" {
		return 0, 0, false
	}
	return readCPUStat(g.unified)
}

// StepCPUTime is CPUTime of a step's group.
func (g *Group) StepCPUTime(step int) (user, system time.Duration, ok bool) {
	if g.unified == "" {
		return 0, 0, false
	}
	return readCPUStat(g.stepDir(step))
}

func readCPUStat(dir string) (user, system time.Duration, ok bool) {
	b, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return 0, 0, false
	}
	u, uerr := countOf(b, "user_usec")
	s, serr := countOf(b, "system_usec")
	return time.Duration(u) * time.Microsecond, time.Duration(s) * time.Microsecond, uerr == nil && serr == nil
}

// MemoryNow is the memory of the group's processes now: anonymous and shared pages, without
// the kernel's cache of files. ok is false where the group does not count memory.
func (g *Group) MemoryNow() (bytes int64, ok bool) {
	if g.memory == "" {
		return 0, false
	}
	b, err := os.ReadFile(filepath.Join(g.memory, "memory.stat"))
	if err != nil {
		return 0, false
	}
	own, shared := "total_rss", "total_shmem"
	if g.memory == g.unified {
		own, shared = "anon", "shmem"
	}
	n, err := countOf(b, own)
	more, err2 := countOf(b, shared)
	return int64(n) + int64(more), err == nil && err2 == nil
}

// MemoryPeak is the most memory that was charged to the group at one time, the kernel's cache
// of files included. ok is false where that is not counted: in v2 before Linux 5.19.
func (g *Group) MemoryPeak() (bytes int64, ok bool) {
	if g.memory == "" {
		return 0, false
	}
	name := "memory.max_usage_in_bytes"
	if g.memory == g.unified {
		name = "memory.peak"
	}
	b, err := os.ReadFile(filepath.Join(g.memory, name))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}

// StepProcs lists the processes in the groups of steps that OpenStep made, by step.
func (g *Group) StepProcs() (map[int][]int, error) {
	if g.unified == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(g.unified)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	out := map[int][]int{}
	for _, e := range entries {
		number, isStep := strings.CutPrefix(e.Name(), "step.")
		step, err := strconv.Atoi(number)
		if !isStep || err != nil {
			continue
		}
		pids := map[int]bool{}
		if err := procsOf(filepath.Join(g.unified, e.Name()), pids); err != nil {
			return nil, err
		}
		for pid := range pids {
			out[step] = append(out[step], pid)
		}
	}
	return out, nil
}
