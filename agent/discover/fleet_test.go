package discover

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

func TestFleetH100(t *testing.T) {
	m, _ := look(t, tree(t, "h100x8"), programs{"cox-gpuprobe": {out: recorded(t, "gpuprobe-h100x8.json")}}, nil)
	for i := range m.GPUs {
		if i > 1 {
			for k := range m.GPUs[i].Links {
				m.GPUs[i].Links[k].Fabric = 0 // so that every kind comes up
			}
		}
	}
	devices, names := Fleet(m.GPUs, nil)
	if len(devices) != 8 || len(names) != 8 {
		t.Fatalf("%d devices, %d names", len(devices), len(names))
	}
	want := fleet.Device{
		Index: 2, Minor: 2, Kind: "gpu", Type: "h100", UUID: "GPU-00000002-1111-2222-3333-444444444444",
		Memory: 81559 << 20, NUMA: 0, Bus: "0000:1b:00.0",
		Links: []fleet.Link{
			{Peer: 0, Kind: fleet.LinkHost},
			{Peer: 1, Kind: fleet.LinkHost},
			{Peer: 3, Kind: fleet.LinkNUMA},
			{Peer: 4, Kind: fleet.LinkSystem},
			{Peer: 5, Kind: fleet.LinkSystem},
			{Peer: 6, Kind: fleet.LinkSystem},
			{Peer: 7, Kind: fleet.LinkSystem},
		},
	}
	if d := cmp.Diff(want, devices[2]); d != "" {
		t.Errorf("device 2 (-want +got):\n%s", d)
	}
	if d := cmp.Diff(fleet.Link{Peer: 1, Kind: fleet.LinkDirect, Lanes: 18}, devices[0].Links[0]); d != "" {
		t.Errorf("link 0 to 1 (-want +got):\n%s", d)
	}
	for i, d := range devices {
		if (d.Foreign > 0) != (i == 6) {
			t.Errorf("device %d: %d foreign bytes", i, d.Foreign)
		}
	}
	if devices[6].Foreign != 75010<<20 {
		t.Errorf("foreign use of device 6: %d", devices[6].Foreign)
	}
	if d, _ := Fleet(m.GPUs, func(pid int) bool { return pid == 31337 }); d[6].Foreign != 0 {
		t.Errorf("our own process counts as foreign: %d", d[6].Foreign)
	}
}

// GPUs kept out leave no links behind.
func TestFleetOfSomeGPUs(t *testing.T) {
	m, _ := look(t, tree(t, "h100x8"), programs{"cox-gpuprobe": {out: recorded(t, "gpuprobe-h100x8.json")}},
		map[string]string{"CUDA_VISIBLE_DEVICES": "3,5"})
	devices, names := Fleet(m.GPUs, nil)
	if len(devices) != 2 || devices[0].Index != 3 || len(devices[0].Links) != 1 || devices[0].Links[0].Peer != 5 {
		t.Errorf("%+v", devices)
	}
	if !slices.Equal(names, []deviceenv.Device{{Vendor: NVIDIA, Index: 3}, {Vendor: NVIDIA, Index: 5}}) {
		t.Errorf("%+v", names)
	}
}

func TestFleetMIGAndTwoVendors(t *testing.T) {
	gpus := []GPU{
		{Vendor: NVIDIA, Index: 0, UUID: "GPU-a", Type: "a100", UsedBytes: 1, MIG: MIG{Enabled: true, Instances: []Instance{
			{UUID: "MIG-1", Profile: "3g.20gb", MemoryBytes: 20 << 30}, {UUID: "MIG-2", Profile: "1g.5gb", MemoryBytes: 5 << 30},
		}}, Links: []Link{{Peer: 1, Fabric: 12}, {Peer: 2, Fabric: 12}}},
		{Vendor: NVIDIA, Index: 1, UUID: "GPU-b", Type: "a100", Links: []Link{{Peer: 0, Fabric: 12}, {Peer: 2, Fabric: 12}}},
		{Vendor: NVIDIA, Index: 2, UUID: "GPU-c", Type: "a100", MIG: MIG{Enabled: true}}, // no instance: nothing to give
		{Vendor: AMD, Index: 0, UUID: "GPU-d", Type: "mi210", Links: []Link{{Peer: 1, Fabric: 1}}},
		{Vendor: AMD, Index: 1, UUID: "GPU-e", Type: "mi210"},
	}
	devices, names := Fleet(gpus, nil)
	want := []fleet.Device{
		{Index: 0, Kind: "gpu", Type: "a100", UUID: "MIG-1", Profile: "3g.20gb", Parent: "GPU-a", Memory: 20 << 30},
		{Index: 1, Kind: "gpu", Type: "a100", UUID: "MIG-2", Profile: "1g.5gb", Parent: "GPU-a", Memory: 5 << 30},
		{Index: 2, Kind: "gpu", Type: "a100", UUID: "GPU-b"},
		{Index: 3, Kind: "gpu", Type: "mi210", UUID: "GPU-d", Links: []fleet.Link{{Peer: 4, Kind: fleet.LinkDirect, Lanes: 1}}},
		{Index: 4, Kind: "gpu", Type: "mi210", UUID: "GPU-e"},
	}
	if d := cmp.Diff(want, devices); d != "" {
		t.Errorf("devices (-want +got):\n%s", d)
	}
	wantNames := []deviceenv.Device{
		{Vendor: NVIDIA, Instance: "MIG-1"},
		{Vendor: NVIDIA, Instance: "MIG-2"},
		{Vendor: NVIDIA, Index: 1},
		{Vendor: AMD, Index: 0},
		{Vendor: AMD, Index: 1},
	}
	if d := cmp.Diff(wantNames, names); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
}

func TestFleetDeclared(t *testing.T) {
	devices, names := Fleet(DeclaredGPUs("h100", 2, 80<<30), nil)
	if len(devices) != 2 || !devices[1].Declared || devices[1].Index != 1 || devices[1].Minor != -1 || len(devices[1].Links) != 0 {
		t.Errorf("%+v", devices)
	}
	if names[1] != (deviceenv.Device{Vendor: Declared, Index: 1}) {
		t.Errorf("%+v", names)
	}
}
