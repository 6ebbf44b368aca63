package discover

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// nvidiaSMIOf answers as nvidia-smi on the 8 × H100 server.
func nvidiaSMIOf(t *testing.T) programs {
	return programs{
		"nvidia-smi --query-gpu":          {out: recorded(t, "nvidia-smi-query-h100x8.txt")},
		"nvidia-smi --query-compute-apps": {out: recorded(t, "nvidia-smi-apps-h100x8.txt")},
		"nvidia-smi topo -m":              {out: recorded(t, "nvidia-smi-topo-h100x8.txt")},
	}
}

func TestH100(t *testing.T) {
	m, notes := look(t, tree(t, "h100x8"), programs{
		"/opt/cox/cox-gpuprobe": {out: recorded(t, "gpuprobe-h100x8.json")},
	}, nil)
	wantNotes(t, notes)
	if len(m.CPUs) != 224 || len(m.NUMA) != 2 || m.UsableCPUs() != 224 || len(m.GPUs) != 8 {
		t.Fatalf("%d CPUs, %d nodes, %d GPUs", len(m.CPUs), len(m.NUMA), len(m.GPUs))
	}
	g := m.GPUs[2]
	if g.Type != "h100" || g.PCI != "0000:1b:00.0" || g.MemoryBytes != 81559<<20 || g.Minor != 2 || g.Index != 2 {
		t.Errorf("GPU 2: %+v", g)
	}
	for i, want := range []int{0, 0, 0, 0, 1, 1, 1, 1} {
		if m.GPUs[i].NUMA != want {
			t.Errorf("GPU %d is in NUMA node %d, want %d", i, m.GPUs[i].NUMA, want)
		}
	}
	var paths []string
	for _, l := range m.GPUs[0].Links {
		if l.Fabric != 18 {
			t.Errorf("GPU 0 to %d: %d NVLinks, want 18", l.Peer, l.Fabric)
		}
		paths = append(paths, l.Path.String())
	}
	want := []string{"switch", "host-bridge", "numa", "cross-numa", "cross-numa", "cross-numa", "cross-numa"}
	if d := cmp.Diff(want, paths); d != "" {
		t.Errorf("paths from GPU 0 (-want +got):\n%s", d)
	}
	for i, g := range m.GPUs {
		held, who := g.Held(nil)
		if held != (i == 6) {
			t.Errorf("GPU %d held: %t (%s)", i, held, who)
		}
		if held && who != "process 31337 (python3.11) holds 75002 MiB" {
			t.Errorf("GPU %d is held by %q", i, who)
		}
	}
}

// Both tools tell the same of the same machine.
func TestHelperAndNvidiaSMIAgree(t *testing.T) {
	byHelper, _ := look(t, tree(t, "h100x8"), programs{"cox-gpuprobe": {out: recorded(t, "gpuprobe-h100x8.json")}}, nil)
	bySMI, notes := look(t, tree(t, "h100x8"), nvidiaSMIOf(t), nil)
	wantNotes(t, notes, "cox-gpuprobe: not beside cox and not in PATH")
	if d := cmp.Diff(byHelper, bySMI); d != "" {
		t.Errorf("helper - nvidia-smi +:\n%s", d)
	}
	// Without sysfs the matrix alone gives links and NUMA nodes.
	bare, _ := look(t, fstest.MapFS{}, nvidiaSMIOf(t), nil)
	if g := bare.GPUs[5]; g.Links[0].Fabric != 18 || g.NUMA != 1 || g.Minor != -1 {
		t.Errorf("without sysfs GPU 5: %+v", g)
	}
}

func TestNvidiaFailures(t *testing.T) {
	const lost = "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU"
	exit := errors.New("exit status 9")
	crash := answer{err: errors.New("signal: segmentation fault")}
	for _, c := range []struct {
		name  string
		p     programs
		gpus  int
		notes []string
	}{
		{"no driver", programs{
			"/opt/cox/cox-gpuprobe": {out: `{"version":1,"error":{"kind":"no-driver","text":"NVML does not start: driver not loaded"}}`, err: exit},
			"nvidia-smi":            {out: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure …\n", err: exit},
		}, 0, []string{
			"nvml: NVML does not start: driver not loaded", "nvidia-smi: NVIDIA-SMI has failed because",
			"sysfs: 8 NVIDIA GPUs on the PCI bus cannot be used",
		}},
		{"helper crashes, nvidia-smi silent", programs{
			"/opt/cox/cox-gpuprobe": crash, "nvidia-smi": {err: errSilent},
		}, 0, []string{"cox-gpuprobe: signal: segmentation fault", "nvidia-smi: no answer", "sysfs: 8 NVIDIA"}},
		{"helper of another build", programs{
			"/opt/cox/cox-gpuprobe": {out: `{"version":7,"gpus":[]}`},
		}, 0, []string{"cox-gpuprobe: speaks version 7, not 1", "nvidia-smi: not in PATH", "sysfs: 8 NVIDIA"}},
		{"helper prints nonsense", programs{
			"/opt/cox/cox-gpuprobe": {out: `hello`},
		}, 0, []string{"cox-gpuprobe: its output is not JSON", "nvidia-smi: not in PATH", "sysfs: 8 NVIDIA"}},
		{"one GPU lost", programs{
			"nvidia-smi --query-gpu": {out: strings.Replace(recorded(t, "nvidia-smi-query-h100x8.txt"),
				"3, GPU-00000003-1111-2222-3333-444444444444, NVIDIA H100 80GB HBM3, 00000000:3B:00.0, 81559, 1, Disabled, Default", lost, 1), err: exit},
			"nvidia-smi topo": {err: exit}, "nvidia-smi --query-compute-apps": {out: "No running processes found"},
		}, 7, []string{
			"cox-gpuprobe: not beside", "nvidia-smi: Unable to determine the device handle", "nvidia-smi topo: exit status 9",
			"sysfs: GPU 0000:3b:00.0 is on the PCI bus, but",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, notes := look(t, tree(t, "h100x8"), c.p, nil)
			if len(m.GPUs) != c.gpus {
				t.Errorf("%d GPUs, want %d", len(m.GPUs), c.gpus)
			}
			wantNotes(t, notes, c.notes...)
		})
	}
}

func TestMI300X(t *testing.T) {
	byROCm, notes := look(t, tree(t, "mi300x4"), programs{"rocm-smi": {out: recorded(t, "rocm-smi-mi300x4.json")}}, nil)
	wantNotes(t, notes)
	byAMD, notes := look(t, tree(t, "mi300x4"), programs{"amd-smi": {out: recorded(t, "amd-smi-mi300x4.json")}}, nil)
	wantNotes(t, notes, "rocm-smi: not in PATH")
	bySysfs, notes := look(t, tree(t, "mi300x4"), nil, nil)
	wantNotes(t, notes, "rocm-smi: not in PATH", "amd-smi: not in PATH")

	// The driver counts the second socket's pair first, and so do the
	// variables.
	var order []string
	for _, g := range byROCm.GPUs {
		order = append(order, g.PCI)
	}
	if want := []string{"0000:85:00.0", "0000:a6:00.0", "0000:05:00.0", "0000:26:00.0"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	g := byROCm.GPUs[1]
	want := GPU{
		Vendor: AMD, Index: 1, Minor: 131, UUID: "GPU-9246aa2c2b5d6a63", Name: "AMD Instinct MI300X OAM", Type: "mi300x",
		MemoryBytes: 206141652992, UsedBytes: 150323855360, PCI: "0000:a6:00.0", NUMA: 1,
		Processes: []Process{{PID: 4711, Name: "python3", MemoryBytes: 150026064000}},
		Links: []Link{
			{Peer: 0, Fabric: 1, Path: PathSameNUMA},
			{Peer: 2, Fabric: 1, Path: PathCrossNUMA},
			{Peer: 3, Fabric: 1, Path: PathCrossNUMA},
		},
	}
	if d := cmp.Diff(want, g); d != "" {
		t.Errorf("GPU 1 (-want +got):\n%s", d)
	}
	if d := cmp.Diff(byROCm, bySysfs); d != "" {
		t.Errorf("rocm-smi - sysfs +:\n%s", d)
	}
	for i := range byAMD.GPUs {
		byAMD.GPUs[i].Name = "AMD Instinct MI300X OAM" // it names the chip, not the board
	}
	if d := cmp.Diff(byROCm, byAMD); d != "" {
		t.Errorf("rocm-smi - amd-smi +:\n%s", d)
	}
}

func TestProcessorGraphicsAreNoGPU(t *testing.T) {
	fsys := tree(t, "mi300x4")
	for name := range fsys {
		if strings.HasSuffix(name, "mem_info_vram_total") {
			fsys[name] = &fstest.MapFile{Data: []byte("536870912\n")}
		}
	}
	m, notes := look(t, fsys, nil, nil)
	if len(m.GPUs) != 0 || len(notes) != 6 || !strings.Contains(notes[5].Text, "512 MiB of its own") {
		t.Errorf("%d GPUs; %v", len(m.GPUs), notes)
	}
}

func TestNoComputeDriver(t *testing.T) {
	fsys := tree(t, "mi300x4")
	for name := range fsys {
		if strings.HasPrefix(name, "sys/class/kfd") || name == "dev/kfd" {
			delete(fsys, name)
		}
	}
	m, notes := look(t, fsys, nil, nil)
	if len(m.GPUs) != 0 {
		t.Errorf("%d GPUs", len(m.GPUs))
	}
	wantNotes(t, notes, "amdgpu: 4 AMD GPUs on the PCI bus, but no compute driver")
}

func TestHeld(t *testing.T) {
	const gib = 1 << 30
	mine := func(pid int) bool { return pid == 1 }
	for _, c := range []struct {
		name string
		gpu  GPU
		own  func(int) bool
		want string // part of who; "" for free
	}{
		{"idle", GPU{MemoryBytes: 80 * gib, UsedBytes: 4 << 20}, nil, ""},
		{"0 % busy, 92 % of memory held by somebody unseen", GPU{MemoryBytes: 80 * gib, UsedBytes: 74 * gib}, nil, "75776 MiB in use by processes that cannot be seen"},
		{"small computing process", GPU{MemoryBytes: 80 * gib, UsedBytes: gib / 2, Processes: []Process{{PID: 2, Name: "python3", MemoryBytes: gib / 2}}}, nil, "process 2 (python3) holds 512 MiB"},
		{"computing process of unknown memory", GPU{MemoryBytes: 80 * gib, Processes: []Process{{PID: 2, MemoryBytes: -1}}}, nil, "process 2 uses it"},
		{"our own", GPU{MemoryBytes: 80 * gib, UsedBytes: 70 * gib, Processes: []Process{{PID: 1, MemoryBytes: 70 * gib}}}, mine, ""},
		{"our own and another", GPU{MemoryBytes: 80 * gib, UsedBytes: 75 * gib, Processes: []Process{{PID: 1, MemoryBytes: 70 * gib}, {PID: 2, MemoryBytes: 5 * gib}}}, mine, "process 2"},
		{"our own and something unseen", GPU{MemoryBytes: 80 * gib, UsedBytes: 76 * gib, Processes: []Process{{PID: 1, MemoryBytes: 70 * gib}}}, mine, "6144 MiB in use"},
		{"display server", GPU{MemoryBytes: 24 * gib, UsedBytes: gib, Processes: []Process{{PID: 3, Name: "Xorg", MemoryBytes: gib, Graphics: true}}}, nil, ""},
		{"game", GPU{MemoryBytes: 24 * gib, UsedBytes: 9 * gib, Processes: []Process{{PID: 3, MemoryBytes: 9 * gib, Graphics: true}}}, nil, "processes that draw hold 9216 MiB"},
		{"idle MPS server", GPU{MemoryBytes: 80 * gib, UsedBytes: 30 << 20, Processes: []Process{{PID: 4, Name: mpsServer, MemoryBytes: 30 << 20}}}, nil, ""},
	} {
		held, who := c.gpu.Held(c.own)
		if held != (c.want != "") || !strings.Contains(who, c.want) {
			t.Errorf("%s: held %t by %q, want %q", c.name, held, who, c.want)
		}
	}
}

func TestDeclaredGPUs(t *testing.T) {
	got := DeclaredGPUs("h100", 2, 80<<30)
	if len(got) != 2 || got[1].Index != 1 || got[1].Type != "h100" || got[1].Vendor != Declared || got[1].Minor != -1 {
		t.Errorf("%+v", got)
	}
	if n := len(DeclaredGPUs("h100", -1, 0)); n != 0 {
		t.Errorf("%d devices for -1", n)
	}
}
