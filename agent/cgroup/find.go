package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hierarchy is one mounted cgroup tree and the caller's place in it.
type hierarchy struct {
	unified     bool
	controllers []string // v1
	own         string   // the directory of the caller's own group
	root        string   // the mount point
}

// Find returns where the caller can make groups, and what is missing, one
// sentence each.
func Find() (Base, []string) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Base{}, []string{"control groups are not used: " + err.Error()}
	}
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return Base{}, []string{"control groups are not used: " + err.Error()}
	}
	return findBase(parseHierarchies(string(mounts), string(self)))
}

func findBase(hs []hierarchy) (Base, []string) {
	var b Base
	for _, h := range hs {
		if h.unified {
			b.Unified, b.Memory, b.CPU, b.PIDs = unifiedBase(h)
		}
	}
	for _, h := range hs {
		if h.unified || !canMake(h.own) {
			continue
		}
		for _, c := range h.controllers {
			switch {
			case c == "memory" && b.Memory == "":
				b.Memory = h.own
			case c == "cpu" && b.CPU == "":
				b.CPU = h.own
			case c == "pids" && b.PIDs == "":
				b.PIDs = h.own
			}
		}
	}
	return b, b.missingControllers(hs)
}

func (b Base) missingControllers(hs []hierarchy) []string {
	const remedy = "run as root, or inside `systemd-run --user --scope -p Delegate=yes`"
	var notes []string
	switch {
	case len(hs) == 0:
		return []string{"control groups are not mounted: memory is not limited, and processes are followed as descendants of their supervisor"}
	case !b.Kills():
		return []string{"control groups are not writable here: memory is not limited, and processes are followed as descendants of their supervisor; " + remedy}
	}
	if b.Memory == "" {
		notes = append(notes, "memory is not limited: the memory controller cannot be used here; "+remedy)
	}
	if b.CPU == "" {
		notes = append(notes, "CPU shares are not set: the cpu controller cannot be used here; "+remedy)
	}
	return notes
}

// unifiedBase finds a directory of v2 in which groups can be made, best with
// controllers. Processes and controllers exclude each other in one group, so the
// caller's own group serves for limits only if it is the root; otherwise its
// parent, whose controllers are on for its children, does.
func unifiedBase(h hierarchy) (base, memory, cpu, pids string) {
	for _, dir := range []string{h.own, filepath.Dir(h.own)} {
		if len(dir) < len(h.root) || !canMake(dir) {
			continue
		}
		on := enabledControllers(dir)
		if base == "" || slices.Contains(on, "memory") {
			base = dir
		}
		if slices.Contains(on, "memory") {
			memory = dir
			if slices.Contains(on, "cpu") {
				cpu = dir
			}
			if slices.Contains(on, "pids") {
				pids = dir
			}
			return base, memory, cpu, pids
		}
	}
	return base, "", "", ""
}

// enabledControllers returns the controllers that children of a v2 group get, after trying
// to turn on those that limits need.
func enabledControllers(dir string) []string {
	for _, c := range []string{"+memory", "+cpu", "+pids"} {
		_ = writeFile(dir, "cgroup.subtree_control", c)
	}
	b, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	return strings.Fields(string(b))
}

// canMake tries it: permission bits do not tell of read-only mounts.
func canMake(dir string) bool {
	const prefix = "cox.probe."
	if left, err := filepath.Glob(filepath.Join(dir, prefix+"*")); err == nil {
		for _, name := range left { // of processes that were killed in between
			if pid := strings.TrimPrefix(filepath.Base(name), prefix); !pathExists("/proc/" + pid) {
				_ = unix.Rmdir(name)
			}
		}
	}
	probe := filepath.Join(dir, prefix+strconv.Itoa(os.Getpid()))
	if err := unix.Mkdir(probe, 0o755); err != nil {
		return false
	}
	return unix.Rmdir(probe) == nil
}

func pathExists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// parseHierarchies joins /proc/self/mountinfo and /proc/self/cgroup.
func parseHierarchies(mountinfo, self string) []hierarchy {
	place := map[string]string{} // controller, or "" for v2 → path
	for line := range strings.Lines(self) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 {
			for c := range strings.SplitSeq(f[1], ",") {
				place[c] = f[2]
			}
		}
	}
	var out []hierarchy
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fs, fields := strings.Fields(after), strings.Fields(before)
		if !ok || len(fs) < 3 || len(fields) < 5 {
			continue
		}
		root, point := fields[3], fields[4]
		switch fs[0] {
		case "cgroup2":
			out = append(out, hierarchy{unified: true, root: point, own: pathUnder(point, root, place[""])})
		case "cgroup":
			var cs []string
			own := ""
			for c := range strings.SplitSeq(fs[2], ",") {
				if p, known := place[c]; known {
					cs, own = append(cs, c), p
				}
			}
			if cs != nil {
				out = append(out, hierarchy{controllers: cs, root: point, own: pathUnder(point, root, own)})
			}
		}
	}
	return out
}

// pathUnder places a path of /proc/self/cgroup below a mount point that shows the
// tree from root on. A path that the mount does not show becomes the mount point.
func pathUnder(point, root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return point
	}
	return filepath.Join(point, rel)
}
