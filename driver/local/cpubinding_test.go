package local_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// halves takes two of the CPUs on which the test may run for two NUMA nodes, and gives
// each a device of one node of the room; a third device hangs nobody knows where.
func halves(t *testing.T) (numa []local.NUMANode, nodes []fleet.Node) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := range 1024 {
		if set.IsSet(cpu) && len(numa) < 2 {
			numa = append(numa, local.NUMANode{ID: len(numa), CPUs: []int{cpu}, Distance: []int{10, 10}})
		}
	}
	if len(numa) < 2 {
		t.Skip("there is one CPU only")
	}
	n := fleet.Node{State: fleet.Up}
	for d, where := range []int{0, 1, -1} {
		n.Devices = append(n.Devices, fleet.Device{Index: d, Minor: -1, Kind: "gpu", Type: "h100", NUMA: where, Declared: true})
	}
	return numa, []fleet.Node{n}
}

// TestWorkRunsNearItsDevices: the script and the ranks of an attempt run on the CPUs of
// the NUMA node of its devices, as long as those who are bound there have as many as they
// were given; a server that begins anew knows who they are, and a supervisor that is used
// again does not pass on where it ran.
//
// Seen to fail with: bind that sets nothing, begin that keeps what was set, bound without
// attempts of an engine before this one, left that counts nobody, enough that binds to all
// NUMA nodes.
func TestWorkRunsNearItsDevices(t *testing.T) {
	numa, bare := halves(t)
	cfg := local.Config{Root: t.TempDir(), NUMA: numa}
	cfg.Nodes = local.VirtualRoom(local.RoomConfig{Seed: cfg.Root}, bare)
	e := newEngine(t, cfg)
	own := func(n int) string { return fmt.Sprint(numa[n].CPUs[0]) }
	const say = `grep Cpus_allowed_list /proc/self/status | tr -dc '0-9,-'; echo`
	any := strings.TrimSpace(readAll(t, e, 1, say, 0))
	if any == own(0) || any == own(1) {
		t.Fatalf("a job without devices runs on CPU %s only", any)
	}
	n := 1
	on := func(cpus resource.Amount, devices ...int) string {
		t.Helper()
		n++
		return strings.Join(strings.Fields(readAll(t, e, n, say+"\nsrun sh -c '"+strings.ReplaceAll(say, "'", `"`)+"'", cpus, devices...)), " ")
	}
	twice := func(s string) string { return s + " " + s }
	for _, x := range []struct {
		what    string
		cpus    resource.Amount
		devices []int
		want    string
	}{
		{"on the first", resource.OneCPU, []int{0}, twice(own(0))},
		{"without a device", resource.OneCPU, nil, twice(any)},
		{"on the second", resource.OneCPU, []int{1}, twice(own(1))},
		{"on one of which it is not known", resource.OneCPU, []int{2}, twice(any)},
		{"on the first and that", resource.OneCPU, []int{0, 2}, twice(any)},
		{"with more CPUs than are near", 2 * resource.OneCPU, []int{0}, twice(any)},
	} {
		if got := on(x.cpus, x.devices...); got != x.want {
			t.Errorf("%s: it runs on CPUs %q, want %q", x.what, got, x.want)
		}
	}

	n++
	holder := bindPlan(t, e, n, "exec sleep 600", 600, 0)
	if err := e.Launch(t.Context(), holder); err != nil {
		t.Fatal(err)
	}
	until(t, e, holder.Ref, running)
	for _, when := range []string{"beside it", "beside it, of an engine that begins anew"} {
		if got := on(400, 0); got != twice(own(0)) {
			t.Errorf("%s: what has room runs on CPUs %q", when, got)
		}
		if got := on(500, 0); got != twice(any) {
			t.Errorf("%s: what has no room runs on CPUs %q", when, got)
		}
		if got := on(resource.OneCPU, 1); got != twice(own(1)) {
			t.Errorf("%s: on the other it runs on CPUs %q", when, got)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = newEngine(t, cfg)
	}
	if err := e.Stop(t.Context(), holder.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	until(t, e, holder.Ref, gone)
	if got := on(500, 0); got != twice(own(0)) {
		t.Errorf("after it: it runs on CPUs %q", got)
	}

	// What has devices of all NUMA nodes is bound to nothing, so it is in nobody's way.
	n++
	wide := bindPlan(t, e, n, "exec sleep 600", 1600, 0, 1)
	if err := e.Launch(t.Context(), wide); err != nil {
		t.Fatal(err)
	}
	until(t, e, wide.Ref, running)
	if got := on(500, 0); got != twice(own(0)) {
		t.Errorf("beside one with devices of all NUMA nodes: it runs on CPUs %q", got)
	}
	if err := e.Stop(t.Context(), wide.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	until(t, e, wide.Ref, gone)
}

// bindPlan plans a script on the first node with CPUs and devices.
func bindPlan(t *testing.T, e *local.Engine, n int, script string, cpus resource.Amount, devices ...int) *engine.Launch {
	l := again(plan(t, e, 1, script), n)
	l.Claims[0].Take.CPU, l.Claims[0].Devices = cpus, nil
	for _, d := range devices {
		l.Claims[0].Devices = append(l.Claims[0].Devices, fleet.DeviceClaim{Index: d, Share: resource.WholeDevice})
	}
	return l
}

// readAll runs a script and returns what it says.
func readAll(t *testing.T, e *local.Engine, n int, script string, cpus resource.Amount, devices ...int) string {
	t.Helper()
	r := run(t, e, bindPlan(t, e, n, script, cpus, devices...))
	succeeded(t, r)
	return read(t, r.Files[0])
}
