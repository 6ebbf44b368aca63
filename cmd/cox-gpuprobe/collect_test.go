package main

import (
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
)

// switched is a server whose GPUs have links to switches, told by type where
// typed is set, else hidden from this machine as in a guest.
func switched(gpus uint32, links []uint32, typed bool) *nvml {
	return &nvml{
		init:     func() status { return success },
		shutdown: func() status { return success },
		count:    func(n *uint32) status { *n = gpus; return success },
		byIndex:  func(i uint32, d *device) status { *d = device(i + 1); return success },
		uuid:     func(d device, b *byte, _ uint32) status { *b = 'A' + byte(d); return success },
		name:     func(device, *byte, uint32) status { return notSupported },
		memory1:  func(device, *memoryV1) status { return notSupported },
		linkState: func(d device, link uint32, active *uint32) status {
			*active = 0
			if link < links[d-1] {
				*active = 1
			}
			return success
		},
		linkType: func(_ device, _ uint32, kind *uint32) status {
			*kind = remoteSwitch
			if !typed {
				return noPermission
			}
			return success
		},
		linkRemote: func(device, uint32, *pciInfo) status { return noPermission },
		p2p:        func(_, _ device, _ uint32, state *uint32) status { *state = 0; return success },
	}
}

func linkCounts(r probe.Report) map[[2]int]int {
	out := map[[2]int]int{}
	for _, g := range r.GPUs {
		for _, l := range g.Links {
			out[[2]int{g.Index, l.Peer}] = l.Count
		}
	}
	return out
}

func TestLinksThroughSwitches(t *testing.T) {
	want := map[[2]int]int{{0, 1}: 18, {1, 0}: 18, {0, 2}: 17, {2, 0}: 17, {1, 2}: 17, {2, 1}: 17}
	for _, typed := range []bool{true, false} {
		// GPU 2 has lost a link, GPU 3 all of them.
		r := collectReport(switched(4, []uint32{18, 18, 17, 0}, typed))
		if d := cmp.Diff(want, linkCounts(r)); d != "" {
			t.Errorf("typed %t (-want +got):\n%s", typed, d)
		}
	}
	// Joined by fabric only where the driver says so.
	l := switched(2, []uint32{18, 18}, true)
	l.p2p = func(_, _ device, _ uint32, state *uint32) status { *state = 5; return success }
	if got := linkCounts(collectReport(l)); len(got) != 0 {
		t.Errorf("links %v although the driver denies them", got)
	}
}

// What only the newest drivers know may be missing altogether.
func TestLeastLibrary(t *testing.T) {
	l := switched(2, []uint32{0, 0}, false)
	l.linkState, l.linkType, l.linkRemote, l.p2p = nil, nil, nil, nil
	r := collectReport(l)
	want := []probe.GPU{{Index: 0, Minor: -1, UUID: "B"}, {Index: 1, Minor: -1, UUID: "C"}}
	if d := cmp.Diff(want, r.GPUs); d != "" || r.Error != nil {
		t.Errorf("%v, -want +got:\n%s", r.Error, d)
	}
}

func TestLostGPUAnswersNothing(t *testing.T) {
	l := switched(2, []uint32{18, 18}, true)
	l.uuid = func(d device, b *byte, _ uint32) status {
		if d == 1 {
			return gpuLost
		}
		*b = 'A'
		return success
	}
	l.memory1 = func(d device, m *memoryV1) status {
		if d == 1 {
			return gpuLost
		}
		m.total = 1 << 30
		return success
	}
	r := collectReport(l)
	if len(r.GPUs) != 1 || r.GPUs[0].Index != 1 || len(r.Problems) == 0 {
		t.Errorf("%+v", r)
	}
}

// The sizes are those of the C structures on every 64-bit system.
func TestLayout(t *testing.T) {
	for name, size := range map[string][2]uintptr{
		"pciInfo":     {unsafe.Sizeof(pciInfo{}), 68},
		"memoryV1":    {unsafe.Sizeof(memoryV1{}), 24},
		"memoryV2":    {unsafe.Sizeof(memoryV2{}), versionOfMemoryV2 & 0xffffff},
		"processInfo": {unsafe.Sizeof(processInfo{}), 24},
		"attributes":  {unsafe.Sizeof(attributes{}), 40},
	} {
		if size[0] != size[1] {
			t.Errorf("%s is %d bytes, want %d", name, size[0], size[1])
		}
	}
}

func TestBaseName(t *testing.T) {
	for command, want := range map[string]string{
		"/usr/bin/python3 train.py --data /a/b": "python3",
		"python":                                "python", "": "", "/": "", "a/b": "b",
	} {
		if got := baseName(command); got != want {
			t.Errorf("baseName(%q) = %q, want %q", command, got, want)
		}
	}
}
