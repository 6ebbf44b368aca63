package hardcase

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/discover"
	"github.com/coxswain-sched/coxswain/agent/discover/probe"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/daemon"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// checkedBy is a room of n nodes with four declared devices each, whose check is a program: it fails on a
// node while a file of that node's name is in a folder, and prints what is in the file.
func checkedBy(n int) (change func(*config.Config), folder func(p *plane.Plane) string) {
	folder = func(p *plane.Plane) string { return filepath.Join(p.Dir, "bad") }
	return func(c *config.Config) {
		c.Room.Nodes, c.Room.GPUsPerNode = n, 4
		dir := filepath.Join(filepath.Dir(c.State.Dir), "bad")
		c.Health.Every, c.Health.Passes = 0, 2 // what happens is asked for, or follows the end of a job
		c.Health.Checks = []config.HealthCheck{{Check: "script", Name: "gpus", Run: []string{"/bin/sh", "-c", `text=$(cat "` + dir + `/$0" 2>/dev/null) || exit 0; echo "$text"; exit 1`}}}
	}, folder
}

// A GPU falls off the bus on a node with four. It alone is fenced: jobs run on the other three, the one
// that needs four waits and says for what, no retry gets the bad one, a restart does not forget it.
// When the check passes, it is used again. (The devices are declared and the check is a program of the
// site's: this machine has no hardware to lose. agent/nodecheck has the tests of what hardware says.)
//
// Seen to fail without Device.Fenced in sched/index, where the fourth device is given out.
func TestHardCase_45_oneOfFour(t *testing.T) {
	change, folder := checkedBy(1)
	p := plane.New(t, change).Start()
	node := p.Names()[0]
	bad := filepath.Join(folder(p), node)
	if err := os.Mkdir(folder(p), 0o755); err != nil {
		t.Fatal(err)
	}
	p.Write("bad/"+node, "device 2: fell off the bus\n")

	p.Ends(p.Submit("exit 1", "--gpus-per-node=1"), "FAILED") // the check follows
	p.Await("the device is fenced", func() bool { return len(p.Node(node).Fences) == 1 })
	if n := p.Node(node); n.State != "up" || n.Devices[2].Fenced == "" || n.Devices[1].Fenced != "" || n.Fences[0].Evidence != "fell off the bus" || n.By != "" {
		t.Errorf("%+v", n)
	}
	four := p.Submit("exit 0", "--gpus-per-node=4")
	three := p.Ends(p.Submit("exit 0", "--gpus-per-node=3"), "COMPLETED")
	for range 2 { // in a row: none of them gets the bad one
		for _, d := range three.Claims[0].Devices {
			if d == 2 {
				t.Errorf("the bad device was used: %+v", three.Claims)
			}
		}
		three = p.Ends(p.Submit("exit 1", "--gpus-per-node=3"), "FAILED")
	}
	p.Stop()
	p.Start()
	if j := p.Get(four); j.State != "PENDING" {
		t.Errorf("the job for four devices is %s", j.State)
	}
	w, err := p.Why(t.Context(), four)
	if err != nil || !slices.ContainsFunc(w.Lines, func(l string) bool {
		return strings.Contains(l, node+" device 2: check gpus failed: fell off the bus")
	}) {
		t.Errorf("it waits for: %+v, %v", w, err)
	}

	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	got, err := p.CheckNodes(t.Context(), &api.CheckNodes{Nodes: []string{node}})
	if err != nil || len(got.Nodes) != 1 || got.Nodes[0].Results[0].Verdict != fleet.Passed || len(got.Nodes[0].Fences) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	p.Ends(four, "COMPLETED")
	var kinds []string
	for _, e := range p.Events(0) {
		if strings.HasPrefix(e.Kind, "node-") {
			kinds = append(kinds, e.Kind)
		}
	}
	if !slices.Equal(kinds, []string{"node-fenced", "node-unfenced"}) {
		t.Errorf("events: %v", kinds)
	}
}

// The mode of one of two devices changes from whole to MIG under a server that looked for devices when it
// began: the device that is no longer there is fenced, the other one is used, and the device is used
// again when MIG is off. (Whole devices stand in for hardware, and a program that prints its answer for
// NVML: this machine has none. The other changes of mode are in agent/nodecheck TestDevices.)
//
// Seen to fail without the comparison of MIG modes in agent/nodecheck: both devices are given out.
func TestHardCase_46_migMode(t *testing.T) {
	change, _ := checkedBy(0)
	p := plane.New(t, func(c *config.Config) {
		change(c)
		c.Room.GPUsPerNode = -1
		c.Health.Checks = []config.HealthCheck{{Check: "devices"}}
	})
	uuids := []string{"GPU-" + rand.Text(), "GPU-" + rand.Text()} // the folders of locks are this machine's
	report := func(mig bool) {
		r := probe.Report{Version: probe.Version}
		for i, uuid := range uuids {
			r.GPUs = append(r.GPUs, probe.GPU{Index: i, UUID: uuid, MIG: mig && i == 0})
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		p.Write("nvml.json", string(b))
	}
	t.Setenv("COX_GPUPROBE", p.Program("nvml", "cat '"+filepath.Join(p.Dir, "nvml.json")+"'"))
	report(false)
	p.Start(func(o *daemon.Options) {
		o.Look = func(context.Context, discover.Options) (discover.Machine, []discover.Note, error) {
			m := discover.Machine{CPUs: []discover.CPU{{}, {}}, MemoryBytes: 1 << 30}
			for i, uuid := range uuids {
				m.GPUs = append(m.GPUs, discover.GPU{Vendor: discover.NVIDIA, Index: i, Minor: -1, UUID: uuid, Type: "a100", NUMA: -1})
			}
			return m, nil, nil
		}
	})
	node := p.Names()[0]
	p.Ends(p.Submit("exit 0", "--gpus-per-node=2"), "COMPLETED")

	report(true)
	got, err := p.CheckNodes(t.Context(), &api.CheckNodes{})
	if err != nil || len(got.Nodes) != 1 || len(got.Nodes[0].Fences) != 1 || *got.Nodes[0].Fences[0].Device != 0 || !strings.HasPrefix(got.Nodes[0].Fences[0].Evidence, "MIG mode was turned on") {
		t.Fatalf("%+v, %v", got, err)
	}
	both := p.Submit("exit 0", "--gpus-per-node=2")
	for range 2 {
		if j := p.Ends(p.Submit("exit 0", "--gpus-per-node=1"), "COMPLETED"); j.Claims[0].Devices[0] != 1 {
			t.Errorf("a job had the device that is gone: %+v", j.Claims)
		}
	}
	if j, n := p.Get(both), p.Node(node); j.State != "PENDING" || n.State != "up" {
		t.Errorf("the job for both is %s, the node %s", j.State, n.State)
	}
	report(false)
	if _, err := p.CheckNodes(t.Context(), &api.CheckNodes{Nodes: []string{node}}); err != nil {
		t.Fatal(err)
	}
	p.Ends(both, "COMPLETED")
}
