package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// TestUsageOfGPUs: the helper runs while an attempt holds a GPU, its samples are averaged by GPU, and
// devices that are only declared are not measured.
func TestUsageOfGPUs(t *testing.T) {
	dir := t.TempDir()
	helper := filepath.Join(dir, "helper")
	text := `#!/bin/sh
[ "$*" = "watch 10" ] || exit 3
trap 'echo >> ` + dir + `/ended' EXIT
say() { echo '{"version":1,"gpus":[{"uuid":"GPU-a","busy":'$1',"used_bytes":'$2',"memory_bytes":80000000000},{"uuid":"GPU-b","busy":-1,"used_bytes":5,"memory_bytes":9}]}'; }
say 10 3000000000
say 50 9000000000
say 30 1000000000
echo > ` + dir + `/said
cat
`
	if err := os.WriteFile(helper, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	first := newEngine(t, local.Config{})
	nodes, err := first.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nodes[0].Devices = []fleet.Device{
		{Index: 0, Minor: -1, Kind: "gpu", Type: "h100", UUID: "GPU-a"},
		{Index: 1, Minor: -1, Kind: "gpu", Type: "h100", UUID: "GPU-b"},
		{Index: 2, Minor: -1, Kind: "gpu", Type: "h100", UUID: "GPU-a", Declared: true},
	}
	e := newEngine(t, local.Config{Nodes: nodes, GPUHelper: helper})
	l := plan(t, e, 1, "until test -e "+dir+"/said; do sleep 0.02; done", "until test -e go; do sleep 0.02; done")
	for i := range 3 {
		l.Claims[0].Devices = append(l.Claims[0].Devices, fleet.DeviceClaim{Index: i, Share: resource.WholeDevice})
	}
	launch(t, e, l)
	want := rusage.GPUs{Count: 1, Busy: 30, Memory: 9e9, Of: 8e10}
	eventually(t, "three samples are in", func() bool {
		u, err := e.Usage(t.Context(), l.Ref)
		return err == nil && u != nil && u.GPUs == want
	})
	if err := os.WriteFile(filepath.Join(l.Job.Spec.WorkDir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := until(t, e, l.Ref, gone)
	succeeded(t, r)
	if r.Used == nil || r.Used.GPUs != want || len(r.Used.Nodes[0].GPUs) != 1 {
		t.Fatalf("%+v", r.Used)
	}
	if g := r.Used.Nodes[0].GPUs[0]; g != (rusage.GPU{Index: 0, Samples: 3, Busy: 30, MaxBusy: 50, Memory: 9e9, Of: 8e10}) {
		t.Errorf("%+v", g)
	}
	// A job without GPUs starts no helper.
	before, err := os.ReadFile(filepath.Join(dir, "said"))
	if err != nil || strings.Count(string(before), "\n") != 1 {
		t.Fatal(before, err)
	}
	_ = os.Remove(filepath.Join(dir, "said"))
	l = plan(t, e, 1, "exit 0")
	l.Ref = engine.Ref{Allocation: 2, Attempt: 1}
	succeeded(t, run(t, e, l))
	if _, err := os.Stat(filepath.Join(dir, "said")); err == nil {
		t.Error("the helper was started for a job without GPUs")
	}
}
