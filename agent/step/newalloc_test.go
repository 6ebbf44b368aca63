package step

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

func TestNewAlloc(t *testing.T) {
	gpu := func(i int, typ string) fleet.Device {
		return fleet.Device{Index: i, Kind: "gpu", Type: typ, UUID: "GPU-" + typ}
	}
	nodes := []fleet.Node{
		{Name: "v1", Address: "127.0.0.11", Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 4 * resource.GiB}, Path: []string{"s1", "leaf2"}, Parts: []string{"main"}, Devices: []fleet.Device{gpu(0, "h100"), gpu(1, "h100")}},
		{Name: "v2", Capacity: resource.Vector{CPU: resource.CPUs(4)}, Devices: []fleet.Device{gpu(0, "mi300x"), {Index: 1, Kind: "gpu", Declared: true}, {Index: 2, Kind: "gpu", Profile: "1g.10gb", UUID: "MIG-x"}}},
	}
	claims := []fleet.Claim{
		{Node: "v1", Group: 0, Tasks: 2, Take: resource.Vector{CPU: 2500, Memory: resource.GiB}, Devices: []fleet.DeviceClaim{{Index: 1, Share: resource.WholeDevice}}},
		{Node: "v1", Group: 0, Tasks: 1, Take: resource.Vector{CPU: 1000}, Devices: []fleet.DeviceClaim{{Index: 0, Share: 500}}},
		{Node: "v2", Group: 1, Tasks: 1, Whole: true, Devices: []fleet.DeviceClaim{{Index: 0}, {Index: 1}, {Index: 2}}},
		{Node: "v1", Group: 1, Tasks: 1, Take: resource.Vector{CPU: 1}},
	}
	j := &job.Job{ID: 7, Attempt: 2, Spec: &job.Spec{
		Groups: []job.TaskGroup{{CPUsPerTask: 1}, {TasksPerNode: 1}}, Program: job.Program{Kind: job.Batch, ScriptName: "train.sh", Args: []string{"x"}},
		WorkDir: "/w", TimeLimit: time.Hour, Source: job.Source{Given: map[string]string{"reservation": "r"}},
	}}
	at := Place{Dir: t.TempDir(), Socket: func(i int) string { return "/s" + string(rune('0'+i)) }, Cluster: "lab"}
	a, err := NewAlloc(j, claims, nodes, at, time.Unix(100, 0))
	if err != nil || a.Cluster != "lab" {
		t.Fatal(a.Cluster, err)
	}
	at.Cluster = ""
	if a, err = NewAlloc(j, claims, nodes, at, time.Unix(100, 0)); err != nil {
		t.Fatal(err)
	}
	dev := func(i int, typ, uuid string, share int, shown deviceenv.Device) AllocDevice {
		return AllocDevice{Index: i, Kind: "gpu", Type: typ, UUID: uuid, Share: share, Shown: shown}
	}
	want := []AllocGroup{
		{Tasks: 3, CPUsPerTask: 1, Parts: []Part{{Node: 0, Tasks: 3, CPUs: 4, MemoryMB: 1024, Devices: []AllocDevice{
			dev(0, "h100", "GPU-h100", 500, deviceenv.Device{Vendor: deviceenv.NVIDIA}), dev(1, "h100", "GPU-h100", 1000, deviceenv.Device{Vendor: deviceenv.NVIDIA, Index: 1}),
		}}}},
		{Tasks: 2, TasksPerNode: 1, Parts: []Part{
			{Node: 1, Tasks: 1, CPUs: 4, Whole: true, Devices: []AllocDevice{
				dev(0, "mi300x", "GPU-mi300x", 0, deviceenv.Device{Vendor: deviceenv.AMD}), dev(1, "", "", 0, deviceenv.Device{Vendor: deviceenv.Declared, Index: 1}),
				dev(2, "", "MIG-x", 0, deviceenv.Device{Vendor: deviceenv.NVIDIA, Index: 2, Instance: "MIG-x"}),
			}},
			{Node: 0, Tasks: 1, CPUs: 1},
		}},
	}
	if !reflect.DeepEqual(a.Groups, want) {
		got, _ := json.MarshalIndent(a.Groups, "", " ")
		t.Errorf("groups\n%s", got)
	}
	if a.Name != "train.sh" || a.Partition != "main" || a.SubmitDir != "/w" || a.Reservation != "r" || a.Nodes[0].Path != "s1.leaf2" || a.Nodes[1].Socket != "/s1" || a.Attempt != 2 || a.Cluster != "cox" {
		t.Errorf("allocation %+v", a)
	}
	if err := a.Save(); err != nil {
		t.Fatal(err)
	}
	if back, err := Load(a.File()); err != nil || !reflect.DeepEqual(back.Groups, a.Groups) || !reflect.DeepEqual(back.Nodes, a.Nodes) {
		t.Errorf("read back %+v, %v", back, err)
	}
	for _, bad := range [][]fleet.Claim{nil, {{Node: "v9"}}, {{Node: "v1", Group: 5}}, {{Node: "v1", Group: 0}}} {
		if _, err := NewAlloc(j, bad, nodes, at, time.Time{}); err == nil {
			t.Errorf("claims %+v are accepted", bad)
		}
	}
}

func TestLoadRefusesWhatIsNoAllocation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "alloc.json")
	for _, text := range []string{"", "x", "{}", `{"nodes":[{}],"groups":[{"parts":[{"node":1}]}]}`, `{"nodes":[{}],"groups":[{"parts":[{"node":0},{"node":0}]}]}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err := Load(file); err == nil {
			t.Errorf("%q is read as %+v", text, a)
		}
	}
	if _, err := Load(file + ".not"); err == nil {
		t.Error("a file that is not there is read")
	}
}
