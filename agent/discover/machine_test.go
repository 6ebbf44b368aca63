package discover

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLaptop(t *testing.T) {
	var calls []string
	m, notes, err := Look(t.Context(), Options{FS: tree(t, "laptop"), Run: programs{}.runner(&calls), LookupEnv: environment(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.CPUs) != 8 || m.Cores() != 4 || m.Sockets() != 1 || m.UsableCPUs() != 8 {
		t.Errorf("%d CPUs, %d cores, %d sockets, %d usable", len(m.CPUs), m.Cores(), m.Sockets(), m.UsableCPUs())
	}
	if want := int64(16106504) << 10; m.MemoryBytes != want {
		t.Errorf("memory %d, want %d", m.MemoryBytes, want)
	}
	if len(calls) != 0 {
		t.Errorf("programs started although there is no GPU: %q", calls)
	}
	wantNotes(t, notes, "gpu: no NVIDIA or AMD GPU on the PCI bus")
}

func TestContainerLimits(t *testing.T) {
	m, notes := look(t, tree(t, "container"), nil, nil)
	if got, want := cpuIDs(m.CPUs), []int{4, 5, 6, 7, 8, 9, 10, 11}; !slices.Equal(got, want) {
		t.Errorf("CPUs %v, want %v", got, want)
	}
	if m.MemoryBytes != 12<<30 {
		t.Errorf("memory %d, want the pod's 12 GiB", m.MemoryBytes)
	}
	if m.CPUQuota != 2500 || m.UsableCPUs() != 2 {
		t.Errorf("quota %d, usable %d, want 2500, 2", m.CPUQuota, m.UsableCPUs())
	}
	want := []NUMANode{
		{ID: 0, CPUs: []int{4, 5, 6, 7, 8, 9, 10, 11}, MemoryBytes: 131935516 << 10, Distance: []int{10, 20}},
		{ID: 1, CPUs: []int{}, MemoryBytes: 131935516 << 10, Distance: []int{20, 10}},
	}
	if d := cmp.Diff(want, m.NUMA); d != "" {
		t.Errorf("NUMA nodes (-want +got):\n%s", d)
	}
	wantNotes(t, notes, "affinity: 8 of 32 CPUs", "cpuset: memory of 1 of 2", "cgroup: memory limited to 12288 MiB",
		"cgroup: CPU time limited to 2.500 CPUs", "gpu: no")
}

func TestCgroupVersion1(t *testing.T) {
	m, _ := look(t, tree(t, "cgroup1"), nil, nil)
	if m.MemoryBytes != 2<<30 || m.CPUQuota != 500 || m.UsableCPUs() != 1 {
		t.Errorf("memory %d, quota %d, usable %d; want 2 GiB, 500, 1", m.MemoryBytes, m.CPUQuota, m.UsableCPUs())
	}
}

func TestUpward(t *testing.T) {
	const mount = "/sys/fs/cgroup"
	for _, c := range []struct {
		root, group string
		want        []string
	}{
		{"/", "/", []string{"sys/fs/cgroup"}},
		{"/", "/a/b", []string{"sys/fs/cgroup/a/b", "sys/fs/cgroup/a", "sys/fs/cgroup"}},
		{"/a", "/a/b", []string{"sys/fs/cgroup/b", "sys/fs/cgroup"}},
		{"/a", "/a", []string{"sys/fs/cgroup"}},
		{"/a", "/ab", []string{"sys/fs/cgroup"}},
		{"/a", "/c/d", []string{"sys/fs/cgroup"}},
		{"/a", "/a/../../../etc", []string{"sys/fs/cgroup/etc", "sys/fs/cgroup"}},
	} {
		if got := cgroupAncestors(mount, c.root, c.group); !slices.Equal(got, c.want) {
			t.Errorf("upward(%s, %s, %s) = %q, want %q", mount, c.root, c.group, got, c.want)
		}
	}
	if got := cgroupAncestors("/", "/", "/a"); !slices.Equal(got, []string{"a", "."}) {
		t.Errorf("mounted at the root: %q", got)
	}
}

func TestMemoryNodesNotAllowed(t *testing.T) {
	fsys := tree(t, "container")
	delete(fsys, "sys/fs/cgroup/pod7/memory.max")
	delete(fsys, "sys/fs/cgroup/pod7/c1/memory.max")
	m, _ := look(t, fsys, nil, nil)
	if want := int64(131935516) << 10; m.MemoryBytes != want {
		t.Errorf("memory %d, want one node's %d", m.MemoryBytes, want)
	}
}

// A system without any of the files still gives a machine that can be used.
func TestNothingReadable(t *testing.T) {
	m, notes := look(t, fstest.MapFS{}, nil, nil)
	if len(m.CPUs) != 3 || len(m.NUMA) != 1 || len(m.GPUs) != 0 || m.MemoryBytes != 0 || m.UsableCPUs() != 3 {
		t.Errorf("got %+v", m)
	}
	wantNotes(t, notes, "cpu: neither", "/proc/meminfo: ",
		"cox-gpuprobe: not beside cox and not in PATH", "nvidia-smi: not in PATH")
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := Look(ctx, Options{FS: tree(t, "laptop"), Run: programs{}.runner(nil)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// The real machine, whatever it is: no error, at least one CPU, and every CPU
// in a node that exists.
func TestThisMachine(t *testing.T) {
	m, notes, err := Look(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(notes)
	if m.UsableCPUs() < 1 || len(m.NUMA) == 0 {
		t.Fatalf("%+v", m)
	}
	for _, c := range m.CPUs {
		if !slices.ContainsFunc(m.NUMA, func(n NUMANode) bool { return n.ID == c.NUMA && slices.Contains(n.CPUs, c.ID) }) {
			t.Errorf("CPU %d is in NUMA node %d, which does not list it", c.ID, c.NUMA)
		}
	}
}

func TestParseList(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int
	}{
		{"", nil},
		{"0\n", []int{0}},
		{"0-3,8,10-11", []int{0, 1, 2, 3, 8, 10, 11}},
		{"8,0-1,1", []int{0, 1, 8}},
	} {
		got, err := parseList(c.text)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("parseList(%q) = %v, %v; want %v", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{"3-1", "a", "0-", "-1", "0-99999999", "1 2", "0x1"} {
		if got, err := parseList(text); !errors.Is(err, errList) {
			t.Errorf("parseList(%q) = %v, %v; want an error", text, got, err)
		}
	}
}

// Any text is either refused or read as ascending numbers that are all
// written in it as a number or inside of a range.
func TestParseListAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9]{0,3}([-,][0-9]{0,3}){0,6}`).Draw(t, "text")
		got, err := parseList(text)
		if err != nil {
			return
		}
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatalf("parseList(%q) = %v: not ascending without repetition", text, got)
		}
	})
}
