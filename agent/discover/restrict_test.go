package discover

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestInheritedVariables(t *testing.T) {
	h100 := programs{"cox-gpuprobe": {out: recorded(t, "gpuprobe-h100x8.json")}}
	mi300 := programs{"rocm-smi": {out: recorded(t, "rocm-smi-mi300x4.json")}}
	for _, c := range []struct {
		name    string
		machine string
		p       programs
		env     map[string]string
		want    []int // Index
		note    bool
	}{
		{"not set", "h100x8", h100, nil, []int{0, 1, 2, 3, 4, 5, 6, 7}, false},
		{"all", "h100x8", h100, map[string]string{"CUDA_VISIBLE_DEVICES": "7,6,5,4,3,2,1,0"}, []int{0, 1, 2, 3, 4, 5, 6, 7}, false},
		{"two", "h100x8", h100, map[string]string{"CUDA_VISIBLE_DEVICES": "3, 2"}, []int{2, 3}, true},
		{"empty", "h100x8", h100, map[string]string{"CUDA_VISIBLE_DEVICES": ""}, nil, true},
		{"Slurm without GPUs", "h100x8", h100, map[string]string{"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, nil, true},
		{"wrong number ends the list", "h100x8", h100, map[string]string{"CUDA_VISIBLE_DEVICES": "1,9,2"}, []int{1}, true},
		{"beginning of a UUID", "h100x8", h100, map[string]string{"CUDA_VISIBLE_DEVICES": "GPU-00000005"}, []int{5}, true},
		{"twice the same", "h100x8", h100, map[string]string{"CUDA_VISIBLE_DEVICES": "1,1"}, []int{1}, true},
		{"other vendor's", "h100x8", h100, map[string]string{"ROCR_VISIBLE_DEVICES": "1"}, []int{0, 1, 2, 3, 4, 5, 6, 7}, false},
		{"AMD", "mi300x4", mi300, map[string]string{"ROCR_VISIBLE_DEVICES": "1,3"}, []int{1, 3}, true},
		{"AMD by UUID", "mi300x4", mi300, map[string]string{"ROCR_VISIBLE_DEVICES": "GPU-9246aa2c2b5d6a63"}, []int{1}, true},
		{"HIP counts what is left", "mi300x4", mi300, map[string]string{"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "1"}, []int{3}, true},
		{"HIP out of what is left", "mi300x4", mi300, map[string]string{"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "3"}, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, notes := look(t, tree(t, c.machine), c.p, c.env)
			var got []int
			for _, g := range m.GPUs {
				got = append(got, g.Index)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("GPUs %v, want %v", got, c.want)
			}
			if noted := slices.ContainsFunc(notes, func(n Note) bool { return c.env[n.Source] != "" || n.Source == "CUDA_VISIBLE_DEVICES" }); noted != c.note {
				t.Errorf("noted %t: %v", noted, notes)
			}
		})
	}
}

func TestInheritedMIG(t *testing.T) {
	p := programs{
		"nvidia-smi --query-gpu": {out: "0, GPU-aaaaaaaa-0000-0000-0000-000000000000, NVIDIA A100-SXM4-40GB, 00000000:07:00.0, 40960, 87, Enabled, Default\n"},
		"nvidia-smi -L":          {out: recorded(t, "nvidia-smi-list-mig.txt")},
	}
	const one, two = "MIG-11111111-0000-5000-8000-000000000000", "MIG-22222222-0000-5000-8000-000000000000"
	for value, want := range map[string]int{one: 1, two: 1, one + "," + two: 2, "0": 2, "MIG-3": 0} {
		m, _ := look(t, fstest.MapFS{}, p, map[string]string{"CUDA_VISIBLE_DEVICES": value})
		n := 0
		for _, g := range m.GPUs {
			n += len(g.MIG.Instances)
		}
		if n != want {
			t.Errorf("%q leaves %d instances, want %d", value, n, want)
		}
	}
}
