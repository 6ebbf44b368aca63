package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/preflight"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	amount "github.com/coxswain-sched/coxswain/model/resource"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// pieces are so many H100, and after them so many A100.
func pieces(h100, a100 int) (out []lab.Piece) {
	for i := range h100 + a100 {
		p := lab.Piece{Name: fmt.Sprintf("gpu-%d", i), Memory: "80Gi", Says: map[string]any{"productName": "NVIDIA H100 80GB HBM3", "uuid": fmt.Sprintf("GPU-%d", i), "numaNode": i / 2}}
		if i >= h100 {
			p.Memory, p.Says["productName"] = "40Gi", "NVIDIA A100-SXM4-40GB"
		}
		out = append(out, p)
	}
	return out
}

// claims are the settings with which devices are claimed.
func (b *bench) claims(t *testing.T) kube.Config {
	c := b.config(t, t.TempDir())
	c.Terms.Classes = []string{lab.Driver}
	return c
}

func (b *bench) openWith(t *testing.T, c kube.Config) *kube.Engine {
	t.Helper()
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clear(t, e) })
	return e
}

// testClaims: devices that a DRA driver has on real kubelets, which Coxswain gives to pods.
func testClaims(t *testing.T, b *bench) {
	n3 := pieces(3, 0)
	n3[0].Tainted, n3[2].Broken = true, true
	b.l.Claimable(t, map[string][]lab.Piece{"n1": pieces(2, 2), "n2": pieces(4, 0), "n3": n3})
	t.Cleanup(func() {
		if _, err := b.l.Try(context.Background(), "", "delete", "resourceslices", "--all"); err != nil {
			t.Error(err)
		}
	})
	e := b.openWith(t, b.claims(t))
	t.Run("Seen", func(t *testing.T) { testClaimable(t, e) })
	t.Run("OfTasks", func(t *testing.T) { testClaimsOfTasks(t, b, e) })
	t.Run("Disjoint", func(t *testing.T) { testClaimsDisjoint(t, b, e) })
	t.Run("Foreign", func(t *testing.T) { testClaimsForeign(t, b, e) })
	t.Run("Delegated", func(t *testing.T) { testClaimsDelegated(t, b) })
	t.Run("Broken", func(t *testing.T) { testClaimBroken(t, b) })
}

// machines are the nodes of an engine, by name.
func machines(t *testing.T, e *kube.Engine) map[string]fleet.Node {
	t.Helper()
	all, err := e.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]fleet.Node{}
	for _, n := range all {
		out[n.Name] = n
	}
	return out
}

// free are the numbers of the devices of a node that nobody else has, by type.
func free(n fleet.Node) map[string][]int {
	out := map[string][]int{}
	for _, d := range n.Devices {
		if d.Foreign == 0 {
			out[d.Type] = append(out[d.Type], d.Index)
		}
	}
	return out
}

// testClaimable: what the driver has published is in the fleet and in the look, but for the
// device with a taint.
func testClaimable(t *testing.T, e *kube.Engine) {
	all := machines(t, e)
	for node, want := range map[string]string{"n1": "map[a100:[2 3] h100:[0 1]]", "n2": "map[h100:[0 1 2 3]]", "n3": "map[h100:[0 1]]", "n4": "map[]"} {
		if got := fmt.Sprint(free(all[node])); got != want {
			t.Errorf("%s has %s, want %s", node, got, want)
		}
	}
	if d := all["n1"].Devices[3]; d.Memory != 40*amount.GiB || d.UUID != "GPU-3" || d.NUMA != 1 {
		t.Errorf("%+v", d)
	}
	found, err := e.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range found {
		if strings.HasPrefix(f.What, "devices") {
			lines = append(lines, f.Text)
		}
	}
	for _, want := range []string{"2 × a100, 8 × h100 on 3 of 4 nodes; which ones a pod has, Coxswain picks (DRA)", "10 of gpu.example.com (DeviceClass gpu.example.com)", "1 devices are not offered: their driver or an administrator has put the taint example.com/ecc=bad:NoSchedule on them"} {
		if !slices.Contains(lines, want) {
			t.Errorf("a look finds %q, and not %q", lines, want)
		}
	}
}

// allocations are the claims of a lab that have devices, by name: NODE/DEVICE of each.
func allocations(t *testing.T, l *lab.Lab) map[string][]string {
	t.Helper()
	var all resourcev1.ResourceClaimList
	if err := json.Unmarshal([]byte(l.Kubectl(t, "get", "resourceclaims", "--all-namespaces", "--output=json")), &all); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, c := range all.Items {
		if a := c.Status.Allocation; a != nil {
			for _, r := range a.Devices.Results {
				out[c.Name] = append(out[c.Name], r.Pool+"/"+r.Device)
			}
		}
	}
	return out
}

// testClaimsDisjoint: two jobs on one node have the devices that were chosen for them, each
// rank its own, and the driver is asked for these and no others. What has ended has none when
// it is gone, and the next has them at once.
func testClaimsDisjoint(t *testing.T, b *bench, e *kube.Engine) {
	first, second := launch(1, forever, "n1", "n2"), launch(2, forever, "n1")
	pick := func(l *engine.Launch, claim int, devices ...int) {
		for _, d := range devices {
			l.Claims[claim].Devices = append(l.Claims[claim].Devices, fleet.DeviceClaim{Index: d, Share: amount.WholeDevice})
		}
	}
	has := free(machines(t, e)["n1"])
	pick(first, 0, has["a100"][0])
	pick(first, 1, 3, 1)
	pick(second, 0, has["h100"][0], has["a100"][1])
	one, two := begin(t, e, first).Native, begin(t, e, second).Native
	want := map[string][]string{one + "-0": {"gpu-2"}, one + "-1": {"gpu-1", "gpu-3"}, two + "-0": {"gpu-0", "gpu-3"}}
	check := func(node, claim string) {
		t.Helper()
		if got := b.l.Prepared(node)[claim]; !slices.Equal(got, want[claim]) {
			t.Errorf("on %s for %s the driver prepared %q, want %q", node, claim, got, want[claim])
		}
	}
	check("n1", one+"-0")
	check("n2", one+"-1")
	check("n1", two+"-0")
	if n := machines(t, e)["n1"]; len(free(n)["h100"])+len(free(n)["a100"]) != 4 {
		t.Errorf("what ours have is not others': %+v", n.Devices)
	}
	if s := e.Inventory(); s.Nodes[0].GPUsOurs != 3 || s.Nodes[0].GPUsOthers != 0 {
		t.Errorf("%+v", s.Nodes[0])
	}

	if err := e.Stop(t.Context(), second.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	gone(t, e, second.Ref)
	if a := allocations(t, b.l); a[two+"-0"] != nil || len(a[one+"-0"]) != 1 {
		t.Errorf("of what is gone and what runs there is allocated %v", a)
	}
	third := launch(3, "#!/bin/sh\nexit 0\n", "n1")
	pick(third, 0, has["h100"][0])
	if err := e.Launch(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	r := gone(t, e, third.Ref)
	if got := b.l.Prepared("n1")[r.Native+"-0"]; !r.Exit.OK() || !slices.Equal(got, []string{"gpu-0"}) {
		t.Errorf("after it: %+v, prepared %q", r, got)
	}
	for _, ref := range []engine.Ref{second.Ref, third.Ref} {
		if err := e.Forget(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	b.l.Kubectl(t, "wait", "--for=delete", "resourceclaim/"+two+"-0", "--timeout=5m")
	if err := e.Stop(t.Context(), first.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	gone(t, e, first.Ref)
}

// testClaimsForeign: what the cluster's scheduler has given to a claim of somebody else is not
// free, and a launch that was decided before ends by that name: the device is never given
// twice.
func testClaimsForeign(t *testing.T, b *bench, e *kube.Engine) {
	machines(t, e) // before: all is free
	b.l.Apply(t, `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: theirs}
spec: {devices: {requests: [{name: g, exactly: {deviceClassName: `+lab.Driver+`, allocationMode: ExactCount, count: 3}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: theirs}
spec: {nodeSelector: {kubernetes.io/hostname: n2}, terminationGracePeriodSeconds: 0, resourceClaims: [{name: g, resourceClaimName: theirs}], containers: [{name: c, image: `+lab.Base+`, command: [sleep, '600'], resources: {claims: [{name: g}]}}]}
`)
	t.Cleanup(func() {
		if _, err := b.l.Try(context.Background(), "", "delete", "pod/theirs", "resourceclaim/theirs", "--grace-period=0", "--force"); err != nil {
			t.Error(err)
		}
	})
	b.l.Kubectl(t, "wait", "--for=condition=Ready", "pod/theirs", "--timeout=5m")
	theirs := allocations(t, b.l)["theirs"]
	l := withDevices(launch(11, forever, "n2"), 0, 1, 2, 3)
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	r := gone(t, e, l.Ref)
	if r.Cause != engine.LaunchFailed || !r.Started.IsZero() || !strings.Contains(r.Message, "of node n2 is of ResourceClaim default/theirs") {
		t.Errorf("%+v", r)
	}
	if a := allocations(t, b.l); len(theirs) != 3 || len(a) != 1 || len(a["theirs"]) != 3 {
		t.Errorf("allocated are %v", a)
	}
	left := free(machines(t, e)["n2"])["h100"]
	if len(left) != 1 {
		t.Fatalf("free on n2 are %v", left)
	}
	l = withDevices(launch(12, forever, "n2"), left[0])
	r = begin(t, e, l)
	if got := b.l.Prepared("n2")[r.Native+"-0"]; len(got) != 1 || slices.Contains(theirs, "n2/"+got[0]) {
		t.Errorf("theirs are %q, ours %q", theirs, got)
	}
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	gone(t, e, l.Ref)
}

// testClaimsDelegated: where the cluster's scheduler chooses, it is told of what type and with how
// much memory a device is to be.
func testClaimsDelegated(t *testing.T, b *bench) {
	c := b.claims(t)
	c.Terms.Placed = false
	e := b.openWith(t, c)
	asks := func(allocation uint64, r amount.DeviceRequest) *engine.Launch {
		l := launch(allocation, forever, "pool")
		l.Job.Spec.Groups[0].PerNode.Devices = []amount.DeviceRequest{r}
		return l
	}
	// What pods of before had the cluster's scheduler may give away before their kubelets have given it
	// back, and a kubelet that could not prepare a device tries again after more than a minute.
	until(t, "no claim is held", func() bool {
		return !slices.ContainsFunc(b.l.Nodes, func(n string) bool { return len(b.l.Held(n)) > 0 })
	})
	for i, x := range []struct {
		r    amount.DeviceRequest
		want []string
	}{
		{amount.DeviceRequest{Type: "a100", Count: 2}, []string{"gpu-2", "gpu-3"}},
		{amount.DeviceRequest{Memory: 60 * amount.GiB, Count: 4}, []string{"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}, // n2 alone has so many
	} {
		l := asks(uint64(i+1), x.r)
		r := begin(t, e, l)
		if got := b.l.Prepared(r.Nodes[0].Node)[r.Native+"-0"]; !slices.Equal(got, x.want) {
			t.Errorf("%+v: on %s there are prepared %q, want %q", x.r, r.Nodes[0].Node, got, x.want)
		}
	}
	l := asks(9, amount.DeviceRequest{Type: "h200", Count: 1})
	if err := e.Launch(t.Context(), l); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "no node of the pool has a device that is a h200") {
		t.Errorf("%v", err)
	}
}

// testClaimBroken: a device that its driver cannot prepare ends the attempt after a while, with
// the driver's own words, and is free again.
func testClaimBroken(t *testing.T, b *bench) {
	c := b.claims(t)
	c.Pull = time.Second
	r := b.neverBegins(t, c, withDevices(launch(1, forever, "n3"), 1))
	if r.Cause != engine.LaunchFailed || !strings.Contains(r.Message, "device gpu-2 has fallen off the bus") || !strings.Contains(r.Message, "n3") {
		t.Errorf("%+v", r)
	}
	if a := allocations(t, b.l); len(a) != 0 {
		t.Errorf("allocated are %v", a)
	}
}

// testClaimRights: what a pool takes whose pods claim their devices. That events are listed is
// for devices which cannot be prepared (testClaimBroken), and Services for jobs of several pods; to bind claims is asked within the
// call that writes their status: who may do that alone gives them no devices.
func testClaimRights(t *testing.T, a *audit) {
	terms := settings.Terms{Pool: "k8s-c", Namespace: "claims", Placed: true, Image: lab.Base, AgentImage: lab.Cox, Classes: []string{lab.Driver}}
	a.l.Claimable(t, map[string][]lab.Piece{"n1": pieces(2, 0)})
	a.prove(t, "cid", terms, nil, func(allocation uint64, script string) *engine.Launch {
		return withDevices(launch(allocation, script, "n1"), 1)
	},
		"list events in claims", "create services in claims", "get services in claims", "patch resourceclaims/binding.resource.k8s.io everywhere")
	less := strings.Replace(preflight.Manifest(&terms, nil, settings.Subject{Kind: "User", Name: "bob"}), `"resourceclaims/binding"`, `"resourceclaims/none"`, 1)
	a.l.Apply(t, strings.ReplaceAll(less, `"coxswain-k8s-c"`, `"bob"`))
	a.l.Apply(t, `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"bobs","namespace":"claims"},"spec":{"devices":{"requests":[{"name":"g","exactly":{"deviceClassName":"`+lab.Driver+`"}}]}}}`)
	bob, err := cluster.Open(cluster.Config{Kubeconfig: a.l.User(t, "bob"), Namespace: "claims"})
	if err != nil {
		t.Fatal(err)
	}
	claims := cluster.Resource{Group: "resource.k8s.io", Version: "v1", Name: "resourceclaims"}
	patch := map[string]any{"status": map[string]any{"allocation": map[string]any{"devices": map[string]any{"results": []any{map[string]any{"request": "g", "driver": lab.Driver, "pool": "n1", "device": "gpu-1"}}}}}}
	until(t, "what is missing is the right to bind claims", func() bool {
		err := bob.Patch(t.Context(), claims, "claims", "bobs", "status", cluster.Merge, patch, nil)
		if err == nil {
			t.Fatal("without the right to bind claims they are given devices")
		}
		return strings.Contains(err.Error(), "resourceclaims/binding")
	})
}
