package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// hierarchy is one of version 1 of control groups.
type hierarchy struct {
	at      string // where it is mounted
	options string // what to mount it with
}

// cgroupHierarchies are this machine's. An error says that there are none.
func cgroupHierarchies() ([]hierarchy, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []hierarchy
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 || g[0] != "cgroup" || !strings.HasPrefix(f[4], "/sys/fs/cgroup/") {
			continue
		}
		options := slices.DeleteFunc(strings.Split(g[2], ","), func(o string) bool { return o == "rw" || o == "ro" })
		all = append(all, hierarchy{f[4], strings.Join(options, ",")})
	}
	if len(all) == 0 {
		return nil, errors.New("no version 1 of control groups is mounted here, which this lab's nodes need")
	}
	return all, nil
}

// groupOf is the name of a lab's control group in every hierarchy.
func groupOf(lab string) string { return "cox-kube-" + lab }

// makeGroups makes a node's control groups.
func makeGroups(tops []hierarchy, lab, node string) error {
	for _, h := range tops {
		at := h.at
		for _, name := range []string{groupOf(lab), node} {
			parent := at
			at = filepath.Join(at, name)
			if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			if filepath.Base(h.at) != "cpuset" {
				continue
			}
			for _, what := range []string{"cpuset.cpus", "cpuset.mems"} { // empty in a new group, in which nothing may be then
				b, err := os.ReadFile(filepath.Join(parent, what))
				if err == nil {
					err = os.WriteFile(filepath.Join(at, what), b, 0o644)
				}
				if err != nil {
					return fmt.Errorf("%s of %s: %w", what, at, err)
				}
			}
		}
	}
	return nil
}

// removeGroups removes a lab's control groups, which outlive its processes.
func removeGroups(lab string) error {
	return testcluster.RemoveGroups("/sys/fs/cgroup/*/" + groupOf(lab))
}
