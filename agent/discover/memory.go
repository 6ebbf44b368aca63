package discover

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// installedMemory is the main memory installed on the nodes that this process may
// use, before cgroup limits; 0 where unknown.
func (s *search) installedMemory(nodes []NUMANode) int64 {
	t, ok := s.readText("proc/meminfo")
	total := parseKilobytes(t, "MemTotal")
	if !ok || total == 0 {
		s.addNote("/proc/meminfo", "does not say how much memory there is")
		return 0
	}
	allowed, ok := s.allowedList("Mems_allowed_list")
	use := intersectSorted(nodeIDs(nodes), allowed)
	if !ok || len(use) == len(nodes) {
		return total
	}
	var sum int64
	for _, n := range nodes {
		if _, in := slices.BinarySearch(use, n.ID); in {
			sum += n.MemoryBytes
		}
	}
	if sum == 0 || sum >= total {
		return total
	}
	s.addNote("cpuset", "memory of %d of %d NUMA nodes may be used", len(use), len(nodes))
	return sum
}

func nodeIDs(nodes []NUMANode) []int {
	out := make([]int, len(nodes))
	for i, n := range nodes {
		out[i] = n.ID
	}
	return out
}

// applyCgroupLimits lowers m.MemoryBytes to the cgroup's limit and gives its CPU quota
// in thousandths of a CPU, 0 for none.
func (s *search) applyCgroupLimits(m *Machine) int64 {
	groups := s.findCgroups()
	if limit := s.memoryLimit(groups); limit > 0 && (m.MemoryBytes == 0 || limit < m.MemoryBytes) {
		s.addNote("cgroup", "memory limited to %d MiB", limit>>20)
		m.MemoryBytes = limit
	}
	quota := s.cpuQuota(groups)
	if quota >= int64(len(m.CPUs))*1000 {
		return 0
	}
	if quota > 0 {
		s.addNote("cgroup", "CPU time limited to %d.%03d CPUs", quota/1000, quota%1000)
	}
	return quota
}

// cgroup is where one hierarchy shows this process's group: the directories
// from its own group up to the mount point.
type cgroup struct {
	v2   bool
	dirs []string
}

// findCgroups maps a controller ("memory", "cpu", or "" for version 2) to the
// directories of this process.
func (s *search) findCgroups() map[string]cgroup {
	own, _ := s.readText("proc/self/cgroup")
	mounts, _ := s.readText("proc/self/mountinfo")
	out := map[string]cgroup{}
	for line := range strings.Lines(own) {
		// hierarchy:controllers:path
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(f[1], ",") {
			root, mount, ok := cgroupMount(mounts, controller)
			if !ok {
				continue
			}
			out[controller] = cgroup{v2: controller == "", dirs: cgroupAncestors(mount, root, f[2])}
		}
	}
	return out
}

// cgroupMount finds where a controller's hierarchy is mounted, and which
// group of it the mount shows.
func cgroupMount(mountinfo, controller string) (root, mount string, ok bool) {
	for line := range strings.Lines(mountinfo) {
		// id parent dev root mount options … - type source superoptions
		head, tail, found := strings.Cut(strings.TrimSpace(line), " - ")
		h, t := strings.Fields(head), strings.Fields(tail)
		if !found || len(h) < 5 || len(t) < 1 {
			continue
		}
		v2 := t[0] == "cgroup2" && controller == ""
		v1 := t[0] == "cgroup" && controller != "" && len(t) == 3 && slices.Contains(strings.Split(t[2], ","), controller)
		if v1 || v2 {
			return h[3], h[4], true
		}
	}
	return "", "", false
}

// cgroupAncestors lists the directories, relative to the file system's root, of group
// and its parents as seen at a mount that shows root.
func cgroupAncestors(mount, root, group string) []string {
	rel, inside := strings.CutPrefix(group, strings.TrimSuffix(root, "/"))
	if !inside || rel != "" && rel[0] != '/' {
		rel = "" // a group outside of what the mount shows
	}
	dirs := []string{path.Clean("/" + mount)}
	for part := range strings.SplitSeq(path.Clean("/"+rel), "/") {
		if part != "" {
			dirs = append(dirs, path.Join(dirs[len(dirs)-1], part))
		}
	}
	for i, d := range dirs {
		dirs[i] = cmp.Or(strings.TrimPrefix(d, "/"), ".")
	}
	slices.Reverse(dirs)
	return dirs
}

// unlimitedV1 is where version 1 limits mean none: the largest page-aligned
// number, whose value depends on the page size.
const unlimitedV1 = 1 << 62

// memoryLimit is the smallest limit on the way up, in bytes; 0 for none.
func (s *search) memoryLimit(groups map[string]cgroup) int64 {
	g, name := groups["memory"], "memory.limit_in_bytes"
	if len(g.dirs) == 0 {
		g, name = groups[""], "memory.max"
	}
	var limit int64
	for _, dir := range g.dirs {
		// "max" in version 2 is no number.
		n, ok := s.readNumber(path.Join(dir, name))
		if ok && n > 0 && n < unlimitedV1 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}

// cpuQuota is the smallest quota on the way up, in thousandths of a CPU; 0
// for none.
func (s *search) cpuQuota(groups map[string]cgroup) int64 {
	g, v1 := groups["cpu"], true
	if len(g.dirs) == 0 {
		g, v1 = groups[""], false
	}
	var quota int64
	for _, dir := range g.dirs {
		t, _ := s.readText(path.Join(dir, "cpu.max")) // "200000 100000" or "max 100000"
		if v1 {
			q, _ := s.readText(path.Join(dir, "cpu.cfs_quota_us"))
			p, _ := s.readText(path.Join(dir, "cpu.cfs_period_us"))
			t = fmt.Sprintf("%s %s", q, p)
		}
		f := strings.Fields(t)
		if len(f) != 2 {
			continue
		}
		q, err1 := strconv.ParseInt(f[0], 10, 64)
		p, err2 := strconv.ParseInt(f[1], 10, 64)
		if err1 != nil || err2 != nil || q <= 0 || p <= 0 || q > maxInt64/1000 {
			continue
		}
		if m := max(q*1000/p, 1); quota == 0 || m < quota {
			quota = m
		}
	}
	return quota
}
