package kube_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

const gpu = "nvidia.com/gpu"

// gpus are the devices of a node; those of the numbers are ill.
func gpus(node string, count int, ill ...int) []lab.Device {
	out := make([]lab.Device, count)
	for i := range out {
		out[i] = lab.Device{ID: fmt.Sprintf("GPU-%s-%d", node, i), Ill: slices.Contains(ill, i)}
	}
	return out
}

// withDevices gives every claim of a launch so many devices of its node.
func withDevices(l *engine.Launch, each ...int) *engine.Launch {
	for i := range l.Claims {
		for _, d := range each {
			l.Claims[i].Devices = append(l.Claims[i].Devices, fleet.DeviceClaim{Index: d, Share: resource.WholeDevice})
		}
	}
	return l
}

// see is a script whose ranks say which devices they see; then it stays for a while.
func see(then string) string {
	return "#!/bin/sh\nsrun sh -c 'echo rank $SLURM_PROCID: $NVIDIA_VISIBLE_DEVICES as $CUDA_VISIBLE_DEVICES.'\necho all said\n" + then + "\n"
}

var seen = regexp.MustCompile(`rank (\d+): (\S*) as (\S*)\.`)

// devicesSeen are those of each rank, when all have said so.
func (b *bench) devicesSeen(t *testing.T, r engine.Report) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, m := range seen.FindAllStringSubmatch(b.l.Prints(t, "default", r.Native+"-0", "all said\n"), -1) {
		out[m[1]] = strings.Split(m[2], ",")
		if m[3] != "0,1" {
			t.Errorf("rank %s counts its devices as %q", m[1], m[3])
		}
	}
	return out
}

// testDevices: GPUs that a device plugin has on real kubelets, which choose among them.
func testDevices(t *testing.T, b *bench) {
	b.l.Plug(t, gpu, map[string][]lab.Device{"n3": gpus("n3", 4), "n4": gpus("n4", 4)})
	t.Run("Gang", func(t *testing.T) { testDevicesOfGang(t, b, b.open(t, t.TempDir())) })
	t.Run("PodsOfTasks", func(t *testing.T) { testPodsOfTasks(t, b, b.open(t, t.TempDir())) })
	t.Run("Ill", func(t *testing.T) { testDeviceIll(t, b, b.open(t, t.TempDir())) })
	t.Run("Taken", func(t *testing.T) { testDevicesTaken(t, b) })
}

// testDevicesOfGang: each rank of a gang has two GPUs of its node, and another pod on one of
// the nodes has the others. Seen to fail with srun's environment as it was where srun
// ran: rank 1 on n4 read the devices of n3.
func testDevicesOfGang(t *testing.T, b *bench, e *kube.Engine) {
	first := withDevices(launch(1, see("exec sleep 600"), "n3", "n4"), 0, 1)
	had := b.devicesSeen(t, begin(t, e, first))
	second := withDevices(launch(2, see("exit 0"), "n3"), 2, 3)
	r := begin(t, e, second)
	other := b.devicesSeen(t, r)
	if len(had) != 2 || len(other) != 1 {
		t.Fatalf("ranks have said %v and %v", had, other)
	}
	all := slices.Concat(had["0"], other["0"])
	slices.Sort(all)
	if want := []string{"GPU-n3-0", "GPU-n3-1", "GPU-n3-2", "GPU-n3-3"}; !slices.Equal(all, want) || len(other["0"]) != 2 {
		t.Errorf("on n3 one sees %q and another %q", had["0"], other["0"])
	}
	if d := had["1"]; len(d) != 2 || d[0] == d[1] || !strings.HasPrefix(d[0], "GPU-n4-") || !strings.HasPrefix(d[1], "GPU-n4-") {
		t.Errorf("on n4 one sees %q", d)
	}
	if r := gone(t, e, second.Ref); !r.Exit.OK() {
		t.Errorf("%+v", r)
	}
}

// testDeviceIll: a device whose plugin says that it is not healthy is not in the fleet, and is
// there again when it is well.
func testDeviceIll(t *testing.T, b *bench, e *kube.Engine) {
	count := func() int {
		nodes, err := e.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(nodes, func(n fleet.Node) bool { return n.Name == "n3" })
		return len(nodes[i].Devices)
	}
	if n := count(); n != 4 {
		t.Fatalf("%d devices", n)
	}
	b.l.Plug(t, gpu, map[string][]lab.Device{"n3": gpus("n3", 4, 1)})
	if n := count(); n != 3 {
		t.Errorf("%d devices, and one of four is ill", n)
	}
	found, err := e.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(found, func(f engine.Finding) bool {
		return f.What == "devices" && f.Text == "1 are not healthy and not given to anybody"
	}) {
		t.Errorf("a look finds %+v", found)
	}
	// Those that are well are given, the ill one is not.
	l := withDevices(launch(1, see("exit 0"), "n3"), 0, 1)
	if had := b.devicesSeen(t, begin(t, e, l))["0"]; slices.Contains(had, "GPU-n3-1") || len(had) != 2 {
		t.Errorf("a pod sees %q", had)
	}
	gone(t, e, l.Ref)
	b.l.Plug(t, gpu, map[string][]lab.Device{"n3": gpus("n3", 4)})
	if n := count(); n != 4 {
		t.Errorf("%d devices when all are well", n)
	}
}

// testDevicesTaken: somebody's pod takes devices between our look and our binding. They are
// counted as held by others from the next look on; the kubelet refuses the pod, and the
// attempt ends by that name, with nothing of it begun.
func testDevicesTaken(t *testing.T, b *bench) {
	b.l.Apply(t, `apiVersion: v1
kind: Pod
metadata: {name: taker}
spec: {nodeName: n3, terminationGracePeriodSeconds: 0, containers: [{name: c, image: `+lab.Base+`, command: [sleep, '600'], resources: {limits: {`+gpu+`: 3}}}]}
`)
	t.Cleanup(func() {
		if _, err := b.l.Try(context.Background(), "", "delete", "pod", "taker", "--grace-period=0", "--force"); err != nil {
			t.Error(err)
		}
	})
	b.l.Kubectl(t, "wait", "--for=condition=Ready", "pod", "taker", "--timeout=5m")
	e := b.open(t, t.TempDir())
	nodes, err := e.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		others := 0
		for _, d := range nodes[i].Devices {
			if d.Foreign > 0 {
				others++
			}
		}
		if want := map[string]int{"n3": 3}[nodes[i].Name]; others != want {
			t.Errorf("on %s %d devices are held by others, want %d", nodes[i].Name, others, want)
		}
	}
	r := b.neverBegins(t, b.config(t, t.TempDir()), withDevices(launch(1, see("exit 0"), "n3", "n4"), 0, 1))
	if r.Cause != engine.LaunchFailed || !strings.Contains(r.Message, "UnexpectedAdmissionError") || !strings.Contains(r.Message, gpu) || !strings.Contains(r.Message, "n3") {
		t.Errorf("%+v", r)
	}
}
