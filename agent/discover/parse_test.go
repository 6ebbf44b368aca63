package discover

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
)

func TestTypeName(t *testing.T) {
	for product, want := range map[string]string{
		"NVIDIA H100 80GB HBM3":                 "h100",
		"NVIDIA H100 PCIe":                      "h100",
		"NVIDIA H100 NVL":                       "h100",
		"NVIDIA H200":                           "h200",
		"NVIDIA GH200 480GB":                    "gh200",
		"NVIDIA GB200":                          "gb200",
		"NVIDIA B200":                           "b200",
		"NVIDIA GB10":                           "gb10",
		"NVIDIA A100-SXM4-40GB":                 "a100",
		"NVIDIA A100-SXM4-80GB MIG 1g.10gb":     "a100",
		"NVIDIA A100 80GB PCIe":                 "a100",
		"A100-PCIE-40GB":                        "a100",
		"NVIDIA A10":                            "a10",
		"NVIDIA A10G":                           "a10g",
		"NVIDIA L4":                             "l4",
		"NVIDIA L40S":                           "l40s",
		"Tesla V100-SXM2-16GB":                  "v100",
		"Tesla P100-PCIE-16GB":                  "p100",
		"Tesla T4":                              "t4",
		"Tesla K80":                             "k80",
		"NVIDIA GeForce RTX 4090":               "rtx4090",
		"NVIDIA GeForce RTX 3080 Ti Laptop GPU": "rtx3080ti",
		"NVIDIA GeForce RTX 2070 with Max-Q Design":     "rtx2070",
		"NVIDIA GeForce RTX 4070 Ti SUPER":              "rtx4070tisuper",
		"GeForce GTX 1080 Ti":                           "gtx1080ti",
		"NVIDIA TITAN RTX":                              "titanrtx",
		"NVIDIA TITAN V":                                "titanv",
		"Quadro RTX 6000":                               "rtx6000",
		"NVIDIA RTX A6000":                              "a6000",
		"NVIDIA RTX 6000 Ada Generation":                "rtx6000ada",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition":  "rtxpro6000",
		"AMD Instinct MI300X OAM":                       "mi300x",
		"AMD Instinct MI300X VF":                        "mi300x",
		"Instinct MI210":                                "mi210",
		"AMD Radeon RX 7900 XTX":                        "rx7900xtx",
		"AMD Radeon PRO W7900":                          "w7900",
		"Radeon VII":                                    "vii",
		"Advanced Micro Devices, Inc. [AMD/ATI] Device": "gpu",
		"":                       "gpu",
		"NVIDIA Graphics Device": "gpu",
		"Orin (nvgpu)":           "orinnvgpu",
		"Moore Threads X":        "moorethreadsx",
		"日本 H100":                "h100",
	} {
		if got := TypeName(product); got != want {
			t.Errorf("TypeName(%q) = %q, want %q", product, got, want)
		}
	}
}

// Whatever a driver calls its product, the name can be asked for.
func TestTypeNameAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		product := rapid.String().Draw(t, "product")
		got := TypeName(product)
		if got == "" || strings.Trim(got, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			t.Fatalf("TypeName(%q) = %q", product, got)
		}
	})
}

func TestPCIAddress(t *testing.T) {
	for text, want := range map[string]string{
		"00000000:17:00.0": "0000:17:00.0",
		"0000:C4:00.0":     "0000:c4:00.0",
		"17:00.0":          "0000:17:00.0",
		"00010000:01:00.0": "10000:01:00.0",
		" 0000:3b:00.1\n":  "0000:3b:00.1",
		"[N/A]":            "",
		"":                 "",
		"N/A":              "",
		"0000:17:00":       "",
		"zz:17:00.0":       "",
	} {
		if got := pciAddress(text); got != want {
			t.Errorf("pciAddress(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestParseQueryGPUOdd(t *testing.T) {
	gpus, odd := parseQueryGPU(strings.Join([]string{
		"0, GPU-1, NVIDIA GeForce GTX 1650, 00000000:01:00.0, 4096, 312, [N/A], Default",
		"1, GPU-2, NVIDIA GB10, [N/A], [N/A], [Not Supported], [N/A], Default",
		"2, [Unknown Error], Tesla T4, 00000000:05:00.0, 15360 MiB, 0 MiB, Disabled, Prohibited",
		"3, GPU-4, Tesla V100, 00000000:06:00.0, 16160, 0", // an old driver
		"No devices were found",
		"",
	}, "\r\n"))
	want := []GPU{
		{Vendor: NVIDIA, Index: 0, Minor: -1, UUID: "GPU-1", Name: "NVIDIA GeForce GTX 1650", PCI: "0000:01:00.0", MemoryBytes: 4096 << 20, UsedBytes: 312 << 20, NUMA: -1},
		{Vendor: NVIDIA, Index: 1, Minor: -1, UUID: "GPU-2", Name: "NVIDIA GB10", NUMA: -1},
		{Vendor: NVIDIA, Index: 3, Minor: -1, UUID: "GPU-4", Name: "Tesla V100", PCI: "0000:06:00.0", MemoryBytes: 16160 << 20, NUMA: -1},
	}
	if d := cmp.Diff(want, gpus); d != "" {
		t.Errorf("GPUs (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"GPU 2 is in compute mode prohibited: not used", "No devices were found"}, odd); d != "" {
		t.Errorf("odd lines (-want +got):\n%s", d)
	}
}

// A driver that does not know a field refuses the question; the basic fields
// are asked again.
func TestOldNvidiaSMI(t *testing.T) {
	exit := errors.New("exit status 2")
	m, _ := look(t, fstest.MapFS{}, programs{
		"nvidia-smi --query-gpu": {out: "Field \"mig.mode.current\" is not a valid field to query.\n", err: exit},
		"nvidia-smi --query-gpu=index,uuid,name,pci.bus_id,memory.total,memory.used --": {out: "0, GPU-1, Tesla K80, 00000000:05:00.0, 11441, 0\n"},
		"nvidia-smi --query-compute-apps":                                               {out: "GPU-1, 77, ./a b, c/solver, x, [N/A]\nGPU-9, 1, other, 3\nno, line\n"},
	}, nil)
	if len(m.GPUs) != 1 || m.GPUs[0].Type != "k80" {
		t.Fatalf("GPUs %+v", m.GPUs)
	}
	if d := cmp.Diff([]Process{{PID: 77, Name: "solver, x", MemoryBytes: -1}}, m.GPUs[0].Processes); d != "" {
		t.Errorf("processes (-want +got):\n%s", d)
	}
}

func TestMIGByNvidiaSMI(t *testing.T) {
	m, _ := look(t, fstest.MapFS{}, programs{
		"nvidia-smi --query-gpu": {out: "0, GPU-aaaaaaaa-0000-0000-0000-000000000000, NVIDIA A100-SXM4-40GB, 00000000:07:00.0, 40960, 87, Enabled, Default\n" +
			"1, GPU-bbbbbbbb-0000-0000-0000-000000000000, NVIDIA A100-SXM4-40GB, 00000000:0f:00.0, 40960, 4, Disabled, Default\n"},
		"nvidia-smi -L": {out: recorded(t, "nvidia-smi-list-mig.txt")},
	}, nil)
	want := MIG{Enabled: true, Instances: []Instance{
		{UUID: "MIG-11111111-0000-5000-8000-000000000000", Profile: "3g.20gb", MemoryBytes: 20 << 30},
		{UUID: "MIG-22222222-0000-5000-8000-000000000000", Profile: "1g.5gb", MemoryBytes: 5 << 30},
	}}
	if len(m.GPUs) != 2 {
		t.Fatalf("%d GPUs", len(m.GPUs))
	}
	if d := cmp.Diff(want, m.GPUs[0].MIG); d != "" {
		t.Errorf("GPU 0 (-want +got):\n%s", d)
	}
	if m.GPUs[1].MIG.Enabled || len(m.GPUs[1].MIG.Instances) != 0 {
		t.Errorf("GPU 1: %+v", m.GPUs[1].MIG)
	}
}

func TestMIGProfile(t *testing.T) {
	for _, c := range []struct {
		mig  probe.MIG
		want string
	}{
		{probe.MIG{Name: "NVIDIA A100-SXM4-40GB MIG 1g.5gb"}, "1g.5gb"},
		{probe.MIG{Name: "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb"}, "1c.3g.40gb"},
		{probe.MIG{Name: "NVIDIA H100 80GB HBM3 MIG 1g.10gb+me"}, "1g.10gb+me"},
		{probe.MIG{GPUSlices: 3, ComputeSlices: 3, MemoryBytes: 19968 << 20}, "3g.20gb"},
		{probe.MIG{GPUSlices: 3, ComputeSlices: 1, MemoryBytes: 19968 << 20}, "1c.3g.20gb"},
		{probe.MIG{}, ""},
	} {
		if got := migProfile(c.mig); got != c.want {
			t.Errorf("migProfile(%+v) = %q, want %q", c.mig, got, c.want)
		}
	}
}

func TestParseTopoPaths(t *testing.T) {
	// As people paste it, tabs expanded; old releases have no NUMA column.
	got := parseTopo(strings.Join([]string{
		"        GPU0    GPU1    GPU2    mlx4_0  CPU Affinity",
		"GPU0     X      PIX     NODE    PHB     0-9,20-29",
		"GPU1    PIX      X      SYS     PHB     0-9,20-29",
		"GPU2    NODE    NV2      X      SYS     10-19",
		"mlx4_0  PHB     PHB     SYS      X",
	}, "\n"))
	want := map[[2]int]Link{
		{0, 1}: {Peer: 1, Path: PathSwitch}, {0, 2}: {Peer: 2, Path: PathSameNUMA},
		{1, 0}: {Peer: 0, Path: PathSwitch}, {1, 2}: {Peer: 2, Path: PathCrossNUMA},
		{2, 0}: {Peer: 0, Path: PathSameNUMA}, {2, 1}: {Peer: 1, Fabric: 2},
	}
	if d := cmp.Diff(want, got.links); d != "" {
		t.Errorf("links (-want +got):\n%s", d)
	}
	if len(got.numa) != 0 {
		t.Errorf("NUMA %v", got.numa)
	}
}

func TestParseROCmSpellings(t *testing.T) {
	got, err := parseROCm([]byte("WARNING: AMD GPU device(s) is/are in a low-power state.\n" +
		`{"card1": {"Unique ID": "N/A", "PCI Bus": "0000:C4:00.0", "Card series": "0x1900", "Card model": "Phoenix3", "VRAM Total Memory (B)": 536870912},
		  "card0": {"unique id": "0xAB", "VRAM Total Memory (B)": "N/A"},
		  "system": {"Driver version": "6.7.0"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []GPU{
		{Vendor: AMD, Index: 0, Minor: -1, UUID: "GPU-ab", NUMA: -1},
		{Vendor: AMD, Index: 1, Minor: -1, Name: "Phoenix3", PCI: "0000:c4:00.0", NUMA: -1, MemoryBytes: 536870912},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("GPUs (-want +got):\n%s", d)
	}
}

func TestAMDSMIForms(t *testing.T) {
	got, err := parseAMDStatic([]byte(`[{"gpu":0,"vram":{"size":"196592 MB"},"numa":{"node":"N/A"}},
		{"gpu":1,"vram":{"size":{"value":34359738368,"unit":"B"}},"numa":{"node":1}},{"gpu":2,"vram":{"size":"N/A"}}]`))
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	if b := got[0].VRAM.Size.toBytes(); b != 196592<<20 || got[0].NUMA.Node.known {
		t.Errorf("GPU 0: %d, %+v", b, got[0].NUMA)
	}
	if b := got[1].VRAM.Size.toBytes(); b != 32<<30 || got[1].NUMA.Node.n != 1 {
		t.Errorf("GPU 1: %d, %+v", b, got[1].NUMA)
	}
	if b := got[2].VRAM.Size.toBytes(); b != 0 {
		t.Errorf("GPU 2: %d", b)
	}
}

// No output of a tool, however damaged, breaks a parser.
func TestParsersAnyText(t *testing.T) {
	seeds := []string{
		recorded(t, "nvidia-smi-query-h100x8.txt"), recorded(t, "nvidia-smi-topo-h100x8.txt"),
		recorded(t, "rocm-smi-mi300x4.json"), recorded(t, "amd-smi-mi300x4.json"), recorded(t, "nvidia-smi-list-mig.txt"),
		recorded(t, "gpuprobe-h100x8.json"), "", "\x00", "GPU0", "{}", "[]", "null",
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SampledFrom(seeds).Draw(rt, "seed")
		for range rapid.IntRange(0, 6).Draw(rt, "cuts") {
			i := rapid.IntRange(0, len(text)).Draw(rt, "from")
			j := rapid.IntRange(i, min(len(text), i+40)).Draw(rt, "to")
			text = text[:i] + rapid.StringN(0, 4, 8).Draw(rt, "instead") + text[j:]
		}
		all := answer{out: text}
		p := programs{"cox-gpuprobe": all, "nvidia-smi": all, "rocm-smi": all, "amd-smi": all}
		for _, name := range []string{"h100x8", "mi300x4"} {
			m, _ := look(t, tree(t, name), p, nil)
			for _, g := range m.GPUs {
				g.Held(nil)
			}
			Fleet(m.GPUs, nil)
		}
	})
}
