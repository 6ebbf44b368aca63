package deviceenv

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func devices(vendor Vendor, index ...int) []Device {
	var out []Device
	for _, i := range index {
		out = append(out, Device{Vendor: vendor, Index: i})
	}
	return out
}

func TestFor(t *testing.T) {
	mig := Device{Vendor: NVIDIA, Index: 0, Instance: "MIG-1"}
	for _, c := range []struct {
		name    string
		devices []Device
		present []Vendor
		want    []string
	}{
		{"nothing on a laptop", nil, nil, nil},
		{"nothing where NVIDIA is", nil, []Vendor{NVIDIA}, []string{"CUDA_VISIBLE_DEVICES=-1"}},
		{"nothing where AMD is", nil, []Vendor{AMD}, []string{"HIP_VISIBLE_DEVICES=-1", "ROCR_VISIBLE_DEVICES=-1"}},
		{"NVIDIA", devices(NVIDIA, 2, 3), []Vendor{NVIDIA}, []string{
			"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=2,3", "GPU_DEVICE_ORDINAL=2,3",
		}},
		{"order is kept", devices(NVIDIA, 5, 1), nil, []string{
			"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=5,1", "GPU_DEVICE_ORDINAL=5,1",
		}},
		{"MIG", []Device{mig, {Vendor: NVIDIA, Instance: "MIG-2"}}, []Vendor{NVIDIA}, []string{
			"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=MIG-1,MIG-2",
		}},
		{"AMD", devices(AMD, 2, 3), []Vendor{AMD}, []string{"GPU_DEVICE_ORDINAL=0,1", "ROCR_VISIBLE_DEVICES=2,3"}},
		{"AMD beside NVIDIA", devices(AMD, 2, 3), []Vendor{NVIDIA, AMD}, []string{
			"CUDA_VISIBLE_DEVICES=-1", "GPU_DEVICE_ORDINAL=0,1", "HIP_VISIBLE_DEVICES=0,1", "ROCR_VISIBLE_DEVICES=2,3",
		}},
		{"NVIDIA beside AMD", devices(NVIDIA, 1), []Vendor{NVIDIA, AMD}, []string{
			"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=1", "GPU_DEVICE_ORDINAL=1", "HIP_VISIBLE_DEVICES=-1", "ROCR_VISIBLE_DEVICES=-1",
		}},
		{"both", slices.Concat(devices(NVIDIA, 1), devices(AMD, 3)), []Vendor{NVIDIA, AMD}, []string{
			"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=1", "GPU_DEVICE_ORDINAL=0", "HIP_VISIBLE_DEVICES=0", "ROCR_VISIBLE_DEVICES=3",
		}},
		{"declared", devices(Declared, 0, 1), nil, []string{
			"CUDA_VISIBLE_DEVICES=0,1", "GPU_DEVICE_ORDINAL=0,1", "ROCR_VISIBLE_DEVICES=0,1",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, For(c.devices, c.present...).Environ()); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestApplyRemovesWhatWasInherited(t *testing.T) {
	env := []string{"PATH=/bin", "CUDA_VISIBLE_DEVICES=7", "HIP_VISIBLE_DEVICES=7", "CUDA_VISIBLE_DEVICES_X=1", "ROCR_VISIBLE_DEVICES=", "EMPTY="}
	got := For(devices(AMD, 1), AMD).Apply(env)
	want := []string{"PATH=/bin", "CUDA_VISIBLE_DEVICES_X=1", "EMPTY=", "GPU_DEVICE_ORDINAL=0", "ROCR_VISIBLE_DEVICES=1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if env[1] != "CUDA_VISIBLE_DEVICES=7" {
		t.Error("the environment given was changed")
	}
}

// seen applies a variable as the vendors' libraries do: entries are positions
// in what the layer below left; one that names nothing ends the list.
func seen(below []int, value string) []int {
	if value == "" {
		return below
	}
	var out []int
	for e := range strings.SplitSeq(value, ",") {
		i, err := strconv.Atoi(e)
		if err != nil || i < 0 || i >= len(below) {
			break
		}
		out = append(out, below[i])
	}
	return out
}

// A program in CUDA, HIP or OpenCL sees exactly the GPUs given, in order,
// whatever else the machine has.
func TestProgramsSeeTheirDevices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := map[Vendor][]int{}
		given := map[Vendor][]int{}
		var present []Vendor
		var task []Device
		for _, v := range []Vendor{NVIDIA, AMD} {
			n := rapid.IntRange(0, 8).Draw(t, string(v))
			for i := range n {
				all[v] = append(all[v], i)
			}
			if n > 0 {
				present = append(present, v)
				perm := rapid.Permutation(all[v]).Draw(t, "order")
				given[v] = perm[:rapid.IntRange(0, n).Draw(t, "given")]
			}
			task = append(task, devices(v, given[v]...)...)
		}
		v := For(task, present...)
		cuda := seen(all[NVIDIA], v[CUDA])
		rocr := seen(all[AMD], v[ROCR])
		hipVar := v[HIP]
		if hipVar == "" {
			hipVar = v[CUDA]
		}
		hip := seen(rocr, hipVar)
		opencl := rocr
		if len(given[AMD]) > 0 {
			opencl = seen(rocr, v[OpenCL])
		}
		for name, got := range map[string][]int{"rocr": rocr, "hip": hip, "opencl": opencl} {
			if !slices.Equal(got, given[AMD]) {
				t.Fatalf("%s sees %v, want %v: %v", name, got, given[AMD], v.Environ())
			}
		}
		if !slices.Equal(cuda, given[NVIDIA]) {
			t.Fatalf("CUDA sees %v, want %v: %v", cuda, given[NVIDIA], v.Environ())
		}
	})
}
