// Package cgroup makes one control group per job and node: to limit memory and
// CPU, to kill everything in it, and to prove that nothing in it lives.
//
// It works with what the machine allows: cgroup v2 with or without controllers,
// the hierarchies of v1, both at once, or nothing. Find says what there is and
// what is missing. A group is one directory in every hierarchy that is used;
// groups are not nested in one another.
//
// It does not talk to systemd, and it never moves a process out of a group that
// it did not make.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Base is where groups can be made: a directory in each usable hierarchy, empty
// where there is none.
type Base struct {
	Unified string `json:"unified,omitempty"` // v2
	Memory  string `json:"memory,omitempty"`  // v2 with its memory controller, or v1
	CPU     string `json:"cpu,omitempty"`     // the same for CPU
	PIDs    string `json:"pids,omitempty"`    // the same for numbers of processes; v1's also holds new forks off while a group is killed
}

// Kills reports whether groups can be killed and proved empty.
func (b Base) Kills() bool { return b.Unified != "" || b.PIDs != "" || b.Memory != "" }

// Limits is what a group may use; zero is no limit.
type Limits struct {
	Memory int64 // bytes
	CPU    int64 // thousandths of a CPU; a weight among groups, not a bound
	PIDs   int64 // processes and threads
}

// Group is one control group: a directory in each of up to four hierarchies. A
// directory that does not exist is an empty one.
type Group struct {
	unified, memory, cpu, pids string
	killed                     bool
}

// Group returns the group of a name, whether it exists or not.
func (b Base) Group(name string) *Group {
	at := func(base string) string {
		if base == "" {
			return ""
		}
		return filepath.Join(base, name)
	}
	return &Group{unified: at(b.Unified), memory: at(b.Memory), cpu: at(b.CPU), pids: at(b.PIDs)}
}

// Create makes a group. What cannot be limited is an error, and then nothing is
// left.
func (b Base) Create(name string, l Limits) (*Group, error) {
	g := b.Group(name)
	if l.Memory == 0 && g.memory != g.unified && g.unified+g.pids != "" {
		g.memory = "" // entering a hierarchy costs milliseconds
	}
	if l.CPU == 0 && g.cpu != g.unified {
		g.cpu = ""
	}
	if l.PIDs == 0 && g.unified != "" {
		g.pids = "" // v2 kills without it
	}
	var err error
	for _, d := range g.distinctDirs() {
		if e := os.Mkdir(d, 0o755); e != nil && !errors.Is(e, fs.ErrExist) {
			err = errors.Join(err, e)
		}
	}
	if err == nil {
		err = g.setLimits(l)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control group %s: %w", name, err), g.Remove())
	}
	return g, nil
}

// distinctDirs lists the group's directories, each once.
func (g *Group) distinctDirs() []string {
	var out []string
	for _, d := range []string{g.unified, g.memory, g.cpu, g.pids} {
		if d != "" && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

func (g *Group) setLimits(l Limits) error {
	if l.Memory > 0 && g.memory != "" {
		if err := g.limitMemory(l.Memory); err != nil {
			return err
		}
	}
	if l.PIDs > 0 && g.pids != "" {
		if err := writeFile(g.pids, "pids.max", strconv.FormatInt(l.PIDs, 10)); err != nil {
			return err
		}
	}
	if l.CPU <= 0 || g.cpu == "" {
		return nil
	}
	if g.cpu == g.unified {
		return writeFile(g.cpu, "cpu.weight", strconv.FormatInt(min(10000, max(1, l.CPU/10)), 10))
	}
	return writeFile(g.cpu, "cpu.shares", strconv.FormatInt(max(2, l.CPU*1024/1000), 10))
}

// limitMemory bounds memory and keeps swap from being used in its place, where
// swap is counted at all.
func (g *Group) limitMemory(bytes int64) error {
	n := strconv.FormatInt(bytes, 10)
	limit, swap, most := "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", n
	if g.memory == g.unified {
		limit, swap, most = "memory.max", "memory.swap.max", "0"
	}
	if err := writeFile(g.memory, limit, n); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(g.memory, swap)); err != nil {
		return nil
	}
	return writeFile(g.memory, swap, most)
}

// Thread moves a thread of the caller into the v1 hierarchies of the group, so
// that processes which it starts are born there. Those of v2 are born there by
// CLONE_INTO_CGROUP: see OpenUnified.
func (g *Group) Thread(tid int) error {
	for _, d := range g.distinctDirs() {
		if d == g.unified {
			continue
		}
		if err := writeFile(d, "tasks", strconv.Itoa(tid)); err != nil {
			return err
		}
	}
	return nil
}

// Adopt moves a process into the group, in every hierarchy that the group has.
func (g *Group) Adopt(pid int) error {
	for _, d := range g.distinctDirs() {
		if err := writeFile(d, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

// AdoptInStep moves a process into the group of a step below this one, in v2.
func (g *Group) AdoptInStep(step, pid int) error {
	return writeFile(g.stepDir(step), "cgroup.procs", strconv.Itoa(pid))
}

// Leave moves a thread that Thread moved back to the parents of the group.
func (g *Group) Leave(tid int) error {
	var errs []error
	for _, d := range g.distinctDirs() {
		if d != g.unified {
			errs = append(errs, writeFile(filepath.Dir(d), "tasks", strconv.Itoa(tid)))
		}
	}
	return errors.Join(errs...)
}

// OpenUnified opens the group's directory in v2, nil if there is none.
func (g *Group) OpenUnified() (*os.File, error) {
	if g.unified == "" {
		return nil, nil
	}
	return os.OpenFile(g.unified, unix.O_DIRECTORY|unix.O_PATH|unix.O_CLOEXEC, 0)
}

// OpenStep makes a group below this one in v2, for one step, and opens it.
func (g *Group) OpenStep(step int) (*os.File, error) {
	dir := g.stepDir(step)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.OpenFile(dir, unix.O_DIRECTORY|unix.O_PATH|unix.O_CLOEXEC, 0)
}

func (g *Group) stepDir(step int) string {
	return filepath.Join(g.unified, fmt.Sprintf("step.%d", step))
}

// EndStep kills what is in a step's group until nothing is, and removes it. It
// gives up on processes that SIGKILL does not end: they stay in the group.
func (g *Group) EndStep(step int) error {
	s := &Group{unified: g.stepDir(step)}
	for wait := time.Millisecond; wait < time.Second; wait *= 2 {
		pids, err := s.Procs()
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return s.Remove()
		}
		if err := s.Kill(); err != nil {
			return err
		}
		time.Sleep(wait)
	}
	return fmt.Errorf("control group %s: SIGKILL does not end what is in it", s.unified)
}

// Procs lists the processes in the group and in groups below it, without the
// caller. A group that does not exist has none.
func (g *Group) Procs() ([]int, error) {
	seen := map[int]bool{}
	for _, d := range g.distinctDirs() {
		err := filepath.WalkDir(d, func(name string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			} else if err != nil {
				return err
			}
			if e.IsDir() {
				return procsOf(name, seen)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	delete(seen, os.Getpid())
	out := make([]int, 0, len(seen))
	for pid := range seen {
		out = append(out, pid)
	}
	slices.Sort(out)
	return out, nil
}

func procsOf(dir string, into map[int]bool) error {
	f, err := os.Open(filepath.Join(dir, "cgroup.procs"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if pid, err := strconv.Atoi(s.Text()); err == nil {
			into[pid] = true
		}
	}
	if err := s.Err(); err != nil && !errors.Is(err, unix.ENODEV) {
		return err
	}
	return nil
}

// Kill sends SIGKILL to everything in the group; ones that are born meanwhile
// included where v2 kills. Repeat it until Procs is empty.
func (g *Group) Kill() error {
	g.killed = true
	if g.unified != "" {
		err := writeFile(g.unified, "cgroup.kill", "1")
		if err == nil {
			return nil
		}
		_ = writeFile(g.unified, "cgroup.freeze", "1") // without cgroup.kill: hold it still while its processes are killed
	}
	if g.pids != "" {
		_ = writeFile(g.pids, "pids.max", "0") // no new ones; killing goes on without it
	}
	pids, err := g.Procs()
	for _, pid := range pids {
		if e := unix.Kill(pid, unix.SIGKILL); e != nil && !errors.Is(e, unix.ESRCH) {
			err = errors.Join(err, fmt.Errorf("kill %d: %w", pid, e))
		}
	}
	return err
}

// Killed reports whether Kill was called. Such a group is not for other processes:
// a kernel may end at once what is born into it from another group, and pids.max may
// forbid forks.
func (g *Group) Killed() bool { return g.killed }

// OOMKills counts the processes that the kernel killed at the memory limit.
func (g *Group) OOMKills() (int, error) {
	if g.memory == "" {
		return 0, nil
	}
	name := "memory.oom_control"
	if g.memory == g.unified {
		name = "memory.events"
	}
	b, err := os.ReadFile(filepath.Join(g.memory, name))
	if err != nil {
		return 0, err
	}
	return countOf(b, "oom_kill")
}

// ForksRefused counts the processes and threads that the kernel did not make because the
// group had as many as it may.
func (g *Group) ForksRefused() (int, error) {
	if g.pids == "" {
		return 0, nil
	}
	b, err := os.ReadFile(filepath.Join(g.pids, "pids.events"))
	if err != nil {
		return 0, err
	}
	return countOf(b, "max")
}

// countOf reads a count from a file of lines of a name and a number; 0: it has none of the name.
func countOf(text []byte, name string) (int, error) {
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			return strconv.Atoi(f[1])
		}
	}
	return 0, nil
}

// Remove removes the group and groups below it. Processes in it make that an
// error; one that does not exist is none.
func (g *Group) Remove() error {
	var errs []error
	for _, d := range g.distinctDirs() {
		errs = append(errs, removeTree(d))
	}
	return errors.Join(errs...)
}

func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	// The kernel may need a moment after the last process is gone.
	for try := range 20 {
		err = unix.Rmdir(dir)
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(time.Duration(try) * time.Millisecond)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}

func writeFile(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Empty reports whether no process but the caller is in the group. It costs less
// than Procs.
func (g *Group) Empty() (bool, error) {
	for _, d := range g.distinctDirs() {
		if d == g.unified {
			b, err := os.ReadFile(filepath.Join(d, "cgroup.events"))
			switch {
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV):
				continue
			case err != nil:
				return false, err
			case strings.Contains(string(b), "populated 0"):
				continue
			}
			return false, nil
		}
		pids := map[int]bool{}
		if err := procsOf(d, pids); err != nil {
			return false, err
		}
		delete(pids, os.Getpid())
		if len(pids) > 0 {
			return false, nil
		}
	}
	return true, nil
}

// Freeze suspends everything in the group, what is born meanwhile included, or lets
// it go on. Only v2 can.
func (g *Group) Freeze(on bool) error {
	if g.unified == "" {
		return errors.ErrUnsupported
	}
	text := "0"
	if on {
		text = "1"
	}
	return writeFile(g.unified, "cgroup.freeze", text)
}

// Names lists the groups whose names begin with a prefix.
func (b Base) Names(prefix string) []string {
	seen := map[string]bool{}
	for _, dir := range []string{b.Unified, b.Memory, b.CPU, b.PIDs} {
		if dir == "" {
			continue
		}
		found, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
		for _, name := range found {
			seen[filepath.Base(name)] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
