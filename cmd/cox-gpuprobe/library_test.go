//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
)

// TestMain lets the test binary be the helper, so that a library that crashes
// takes a child down and not the tests.
func TestMain(m *testing.M) {
	if os.Getenv("COX_TEST_BE_HELPER") == "watch" {
		os.Exit(watch(os.Getenv("COX_NVML"), 10*time.Millisecond))
	}
	if os.Getenv("COX_TEST_BE_HELPER") != "" {
		os.Exit(run(os.Getenv("COX_NVML")))
	}
	os.Exit(m.Run())
}

// fake builds the stand-in library.
func fake(t *testing.T, flags ...string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	lib := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	args := append([]string{"-shared", "-fPIC", "-o", lib, "testdata/fakenvml.c"}, flags...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return lib
}

// helper runs the program on a library and reads what it prints.
func helper(t *testing.T, library string) (probe.Report, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "COX_TEST_BE_HELPER=1", "COX_NVML="+library)
	out, err := cmd.Output()
	var r probe.Report
	if jsonErr := json.Unmarshal(out, &r); jsonErr != nil && err == nil {
		t.Fatalf("%v in %q", jsonErr, out)
	}
	return r, err
}

func exitStatus(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

func TestFakeLibrary(t *testing.T) {
	r, err := helper(t, fake(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.GPUs) != 2 {
		t.Fatalf("%+v", r)
	}
	if n := len(r.GPUs[1].Processes); n != 71 {
		t.Errorf("%d processes, want 71", n)
	}
	r.GPUs[1].Processes = append(r.GPUs[1].Processes[:1:1], r.GPUs[1].Processes[69:]...)
	want := probe.Report{
		Version: probe.Version, Driver: "550.54.15",
		Problems: []string{"GPU 2: the GPU has fallen off the bus or cannot be reached"},
		GPUs: []probe.GPU{
			{
				Index: 0, Minor: 4, UUID: "GPU-0", Name: "NVIDIA A100-SXM4-40GB", PCI: "00000000:07:00.0",
				MemoryBytes: 42949672960, UsedBytes: 1000000, MIG: true,
				Instances: []probe.MIG{
					{UUID: "MIG-0-0", Name: "NVIDIA A100-SXM4-40GB MIG 3g.20gb", GPUInstance: 2, GPUSlices: 3, ComputeSlices: 3, MemoryBytes: 19968 << 20},
					{UUID: "MIG-0-1", Name: "NVIDIA A100-SXM4-40GB MIG 1g.5gb", GPUInstance: 9, GPUSlices: 1, ComputeSlices: 1, MemoryBytes: 4864 << 20},
				},
				Links: []probe.Link{{Peer: 1, Count: 4}},
			},
			{
				Index: 1, Minor: 5, UUID: "GPU-1", Name: "NVIDIA A100-SXM4-40GB", PCI: "00000000:0F:00.0",
				MemoryBytes: 42949672960, UsedBytes: 1000001, Exclusive: true, Errors: &probe.Errors{Uncorrected: 3, RemapPending: true},
				Processes: []probe.Process{
					{PID: 1000, MemoryBytes: 1 << 20},
					{PID: 1069, MemoryBytes: -1, Graphics: true},
					{PID: 2000, Name: "Xorg", MemoryBytes: 5 << 20, Graphics: true},
				},
				Links: []probe.Link{{Peer: 0, Count: 4}},
			},
		},
	}
	if d := cmp.Diff(want, r); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// A driver that lacks the newer functions still gives the GPUs.
func TestOldLibrary(t *testing.T) {
	r, err := helper(t, fake(t, "-DOLD"))
	if err != nil || len(r.GPUs) != 2 {
		t.Fatalf("%v: %+v", err, r)
	}
	if g := r.GPUs[0]; g.UsedBytes != 700000000 || g.MIG || len(g.Links) != 1 {
		t.Errorf("%+v", g)
	}
}

func TestLibraryFailures(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.so")
	if err := os.WriteFile(empty, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, library string
		kind          probe.Kind
		text          string
	}{
		{"missing", "libcox-no-such-library.so.1", probe.NoLibrary, "libcox-no-such-library.so.1: cannot open"},
		{"damaged", empty, probe.NoLibrary, "empty.so: "},
		{"another library", "libc.so.6", probe.NoSymbol, "nvmlInit_v2"},
		{"driver not loaded", fake(t, "-DREFUSE=9"), probe.NoDriver, "kernel driver is not loaded"},
		{"driver of another version", fake(t, "-DREFUSE=18"), probe.NoDriver, "different versions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := helper(t, c.library)
			if exitStatus(err) != 1 {
				t.Errorf("exit %v, want 1", err)
			}
			if r.Error == nil || r.Error.Kind != c.kind || !strings.Contains(r.Error.Text, c.text) || strings.Contains(r.Error.Text, "\n") {
				t.Errorf("error %+v, want %s with %q", r.Error, c.kind, c.text)
			}
		})
	}
}

// A library that crashes ends the helper by itself and with no report.
func TestCrashingLibrary(t *testing.T) {
	r, err := helper(t, fake(t, "-DCRASH"))
	if s := exitStatus(err); s == 0 || s == 1 {
		t.Errorf("exit %v, want a crash", err)
	}
	if len(r.GPUs) != 0 {
		t.Errorf("%+v", r)
	}
}

// As it is released: without cgo. The main program starts the same file.
func TestBuiltWithoutCgo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	lib := fake(t)
	bin := filepath.Join(t.TempDir(), "cox-gpuprobe")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(bin)
	cmd.Env = append(os.Environ(), "COX_NVML="+lib, "LD_BIND_NOW=1")
	out, err := cmd.Output()
	var r probe.Report
	if err != nil || json.Unmarshal(out, &r) != nil || len(r.GPUs) != 2 {
		t.Errorf("%v: %s", err, out)
	}
}
