//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
)

// TestWatch: a line comes again and again until standard input ends. A GPU that is lost is not in it,
// and of one that does not say how busy it is that is not known.
func TestWatch(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "COX_TEST_BE_HELPER=watch", "COX_NVML="+fake(t))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	want := probe.Load{Version: probe.Version, GPUs: []probe.GPULoad{
		{UUID: "GPU-0", Busy: -1, UsedBytes: 1000000, MemoryBytes: 42949672960},
		{UUID: "GPU-1", Busy: 37, UsedBytes: 1000001, MemoryBytes: 42949672960},
	}}
	for range 3 {
		var got probe.Load
		if !lines.Scan() {
			t.Fatal("it ended")
		}
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // what was on its way
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestWatchWithoutDriver(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "COX_TEST_BE_HELPER=watch", "COX_NVML="+fake(t, "-DREFUSE=9"))
	out, err := cmd.Output()
	var got probe.Load
	if json.Unmarshal(out, &got) != nil || exitStatus(err) != 1 || got.Error == nil || got.Error.Kind != probe.NoDriver {
		t.Errorf("%v, %q", err, out)
	}
}
