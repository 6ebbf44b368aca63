package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/dra"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// bare is a node that no plugin counts GPUs on.
func bare(n *corev1.Node) {
	delete(n.Status.Capacity, "nvidia.com/gpu")
	delete(n.Status.Allocatable, "nvidia.com/gpu")
}

// tray is what DRA has on a node: so many GPUs, gpu-0, gpu-1, …
func tray(node string, count int) *dra.Tray {
	out := &dra.Tray{Withheld: map[string]int{"their taint": 1}}
	for i := range count {
		out.Offers = append(out.Offers, dra.Offer{
			Piece:  render.Piece{Class: "gpu.nvidia.com", Driver: "gpu.nvidia.com", Pool: node, Device: fmt.Sprint("gpu-", i)},
			Device: fleet.Device{Minor: -1, NUMA: -1, Kind: "gpu", Type: "h100", UUID: fmt.Sprint("GPU-", i)}, Driver: "570.86.15", Says: "true",
		})
	}
	return out
}

// TestDevicesOfDRA: what DRA has on a node is the node's devices, and none is asked for by count.
// What claims of others have is not free, what ours have is theirs.
//
// Seen to fail with: what ours have is foreign.
func TestDevicesOfDRA(t *testing.T) {
	terms := settings.Terms{Pool: "k8s-a", Placed: true}
	all := []Machine{one(t, terms, nodeOf(t, hgx, bare))}
	attachDRADevices(&terms, all, &dra.Stock{Trays: map[string]*dra.Tray{"gpu-7": tray("gpu-7", 4)}, Taken: map[dra.Handle]bool{
		{Driver: "gpu.nvidia.com", Pool: "gpu-7", Device: "gpu-0"}: false,
		{Driver: "gpu.nvidia.com", Pool: "gpu-7", Device: "gpu-2"}: true,
		{Driver: "gpu.nvidia.com", Pool: "gpu-8", Device: "gpu-1"}: false,
	}}, dra.Numbers{})
	m := all[0]
	for i, d := range m.Node.Devices {
		if d.Index != i || d.UUID != fmt.Sprint("GPU-", i) || d.Type != "h100" || (d.Foreign > 0) != (i == 0) || m.Pieces[i].Device != fmt.Sprint("gpu-", i) || m.Says[i] != "true" {
			t.Errorf("%d: %+v %+v", i, d, m.Pieces[i])
		}
	}
	if len(m.Node.Devices) != 4 || !slices.Equal(m.Ask, []string{"", "", "", ""}) || m.Withheld["their taint"] != 1 || m.Double != "" {
		t.Errorf("%+v", m)
	}
	if !slices.Contains(m.Node.Features, "driver-570.86.15") || !slices.IsSorted(m.Node.Features) {
		t.Errorf("features %q", m.Node.Features)
	}
	if s := nodeStock(&m); s.GPUs != 4 || s.GPUsOurs != 1 || s.GPUsOthers != 1 {
		t.Errorf("%+v", s)
	}
}

// TestDevicesTwice: a node whose GPUs a plugin counts too has them once; and where pods have
// some by count, none is given by a claim.
func TestDevicesTwice(t *testing.T) {
	terms := settings.Terms{Placed: true}
	see := func(n corev1.Node, pods ...corev1.Pod) Machine {
		all := []Machine{one(t, terms, n, pods...)}
		attachDRADevices(&terms, all, &dra.Stock{Trays: map[string]*dra.Tray{"gpu-7": tray("gpu-7", 2)}}, dra.Numbers{})
		return all[0]
	}
	free := func(m Machine) (n int) {
		for _, d := range m.Node.Devices {
			if d.Foreign == 0 {
				n++
			}
		}
		return n
	}
	if m := see(nodeOf(t, hgx, nil)); len(m.Node.Devices) != 2 || free(m) != 2 || m.Ill != 0 || !strings.HasSuffix(m.Double, "given by claims") {
		t.Errorf("%+v", m)
	}
	var p corev1.Pod
	if err := json.Unmarshal([]byte(`{"metadata":{"name":"x"},"spec":{"nodeName":"gpu-7","containers":[{"name":"c","resources":{"requests":{"nvidia.com/gpu":"1"}}}]}}`), &p); err != nil {
		t.Fatal(err)
	}
	if m := see(nodeOf(t, hgx, nil), p); len(m.Node.Devices) != 2 || free(m) != 0 || !strings.HasSuffix(m.Double, "have ended") {
		t.Errorf("%+v", m)
	}
	if m := see(nodeOf(t, hgx, bare), p); free(m) != 2 || m.Double != "" { // by the class' extendedResourceName: a claim says which
		t.Errorf("%+v", m)
	}
}
