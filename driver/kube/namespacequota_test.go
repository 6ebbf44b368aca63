package kube_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/preflight"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// TestTenancy: what namespaces keep from jobs, on a real API server, and jobs that run there
// on a real kubelet.
func TestTenancy(t *testing.T) {
	t.Parallel()
	b := newBench(lab.Start(t, lab.Config{Kubelets: 1, NoScheduler: true}))
	t.Run("Accounts", func(t *testing.T) { testAccounts(t, b) }) // looks at all namespaces
	b.beside(t, "Restricted", func(t *testing.T) { testRestricted(t, b) })
	b.beside(t, "Quota", func(t *testing.T) { testQuota(t, b) })
	b.beside(t, "Turns", func(t *testing.T) { testTurns(t, b) })
	b.beside(t, "QuotaUnseen", func(t *testing.T) { testQuotaUnseen(t, b) })
	b.beside(t, "Ranges", func(t *testing.T) { testRanges(t, b) })
	b.beside(t, "NoNamespace", func(t *testing.T) { testNoNamespace(t, b) })
	b.beside(t, "AccountLacksNamespace", func(t *testing.T) { testAccountLacksNamespace(t, b) })
}

// in opens an engine whose jobs are in a namespace.
func (b *bench) in(t *testing.T, namespace string, change func(*kube.Config)) *kube.Engine {
	t.Helper()
	c := b.config(t, t.TempDir())
	c.Terms.Namespace = namespace
	if change != nil {
		change(&c)
	}
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clear(t, e) })
	return e
}

// takes is a job of one pod that asks for thousandths of a CPU and for memory.
func takes(allocation uint64, script string, cpu, mib int) *engine.Launch {
	l := launch(allocation, script, "n1")
	l.Job.Spec.Owner = job.Owner{User: "nobody", UID: 65534, GID: 65534}
	l.Claims[0].Take = resource.Vector{CPU: resource.Amount(cpu), Memory: resource.MiB.Mul(mib)}
	return l
}

// testRestricted: a namespace of the level restricted takes jobs of everybody but root, who is
// told why.
func testRestricted(t *testing.T, b *bench) {
	b.l.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: strict, labels: {pod-security.kubernetes.io/enforce: restricted}}\n")
	e := b.in(t, "strict", nil)
	l := launch(1, "#!/bin/sh\nid -u\n[ $(id -u) = 65534 ] && exit 7\n", "n1")
	l.Job.Spec.Owner = job.Owner{User: "nobody", UID: 65534, GID: 65534}
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, l.Ref); r.Cause != engine.Exited || r.Exit.Status != 7 {
		t.Errorf("nobody: %+v", r)
	}
	root := launch(2, forever, "n1")
	if err := e.Launch(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	r := gone(t, e, root.Ref)
	for _, want := range []string{"namespace strict", "restricted", "runAsNonRoot", "another user than root"} {
		if !strings.Contains(r.Message, want) {
			t.Errorf("root is not told %q: %s", want, r.Message)
		}
	}
	if r.Cause != engine.Refused {
		t.Errorf("root: %+v", r)
	}
}

const quotaOf4 = `apiVersion: v1
kind: Namespace
metadata: {name: NAME}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: team, namespace: NAME}
spec: {hard: {limits.cpu: 400m, requests.memory: 1Gi, pods: "9"}}
`

// counted waits until the cluster has counted what a namespace's quota has.
func (b *bench) counted(t *testing.T, namespace, used string) {
	t.Helper()
	b.l.Kubectl(t, "wait", "--namespace="+namespace, "quota/team", "--for=jsonpath={.status.used.limits\\.cpu}="+used, "--timeout=5m")
}

// testQuota: what a quota has no room for is told so at once, before anything is made, with
// the quota's name and amounts; that there is room is said when there is.
func testQuota(t *testing.T, b *bench) {
	b.l.Apply(t, strings.ReplaceAll(quotaOf4, "NAME", "team"))
	b.counted(t, "team", "0")
	e := b.in(t, "team", nil)
	room := make(chan struct{}, 10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go e.WatchCapacity(ctx, func(...job.ID) { room <- struct{}{} })
	first := begin(t, e, takes(1, forever, 300, 64)) // from now on the quota is seen
	second, third := takes(2, "#!/bin/sh\nexit 5\n", 100, 64), takes(3, "#!/bin/sh\nexit 6\n", 200, 2048)
	err := e.Launch(t.Context(), third)
	const want = "quota team of namespace team: limits.cpu: 200m asked for, 100m of 400m left; requests.memory: 2Gi asked for, which is more than all of it, 1Gi; it cannot begin as it is: submit it with less, or have an administrator raise the quota"
	if fault.KindOf(err) != fault.Exhausted || err.Error() != want {
		t.Fatalf("%v, want %s", err, want)
	}
	third.Claims[0].Take.Memory = resource.MiB.Mul(64)
	if err := e.Launch(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if err := e.Launch(t.Context(), third); fault.KindOf(err) != fault.Exhausted || !strings.Contains(err.Error(), "limits.cpu: 200m asked for, 0 of 400m left") {
		t.Fatalf("beside one that is taken: %v", err)
	}
	gone(t, e, second.Ref)
	if err := e.Stop(t.Context(), first.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-room:
		case <-t.Context().Done():
			t.Fatal("nobody says that there is room")
		}
		err := e.Launch(t.Context(), third)
		if err == nil {
			break
		}
		if fault.KindOf(err) != fault.Exhausted {
			t.Fatal(err)
		}
	}
	if r := gone(t, e, third.Ref); r.Exit.Status != 6 {
		t.Errorf("%+v", r)
	}
	if r := gone(t, e, second.Ref); r.Exit.Status != 5 {
		t.Errorf("%+v", r)
	}
}

// testTurns: who waits for a large part of a quota is not passed by those that come after it, but
// by one that comes before it; when there is room for it, that is said of it.
func testTurns(t *testing.T, b *bench) {
	b.l.Apply(t, strings.ReplaceAll(quotaOf4, "NAME", "turns"))
	b.counted(t, "turns", "0")
	e := b.in(t, "turns", nil)
	room := make(chan []job.ID, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go e.WatchCapacity(ctx, func(jobs ...job.ID) { room <- jobs })
	first := begin(t, e, takes(1, forever, 200, 64))
	large, small, urgent := takes(2, forever, 400, 64), takes(3, forever, 100, 64), takes(4, "#!/bin/sh\nexit 0\n", 100, 64)
	if err := e.Launch(t.Context(), large); fault.KindOf(err) != fault.Exhausted {
		t.Fatal(err)
	}
	small.Ahead = []job.ID{large.Job.ID}
	err := e.Launch(t.Context(), small)
	if want := "quota team of namespace turns: limits.cpu: 100m asked for, and job 102 comes first, which waits for 400m"; err == nil || fault.KindOf(err) != fault.Exhausted || err.Error() != want {
		t.Fatalf("%v, want %s", err, want)
	}
	if err := e.Launch(t.Context(), urgent); err != nil {
		t.Fatal(err)
	}
	gone(t, e, urgent.Ref)
	if err := e.Stop(t.Context(), first.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	gone(t, e, first.Ref)
	for {
		select {
		case jobs := <-room:
			if !slices.Contains(jobs, large.Job.ID) {
				continue
			}
		case <-t.Context().Done():
			t.Fatal("nobody says that there is room for it")
		}
		if err := e.Launch(t.Context(), large); err == nil {
			break
		} else if fault.KindOf(err) != fault.Exhausted {
			t.Fatal(err)
		}
	}
	if err := e.Launch(t.Context(), small); fault.KindOf(err) != fault.Exhausted || !strings.Contains(err.Error(), "0 of 400m left") {
		t.Fatalf("beside the large one: %v", err)
	}
}

// testQuotaUnseen: an account that may not see quotas meets the API server's refusal: the
// attempt has ended as one that waits, and nothing of it is left.
func testQuotaUnseen(t *testing.T, b *bench) {
	b.l.Apply(t, strings.ReplaceAll(quotaOf4, "NAME", "blind"))
	b.counted(t, "blind", "0")
	terms := settings.Terms{Pool: "blind", Namespace: "blind", Placed: true}
	b.l.Apply(t, strings.ReplaceAll(preflight.Manifest(&terms, nil, settings.Subject{Kind: "User", Name: "bea"}), `"resourcequotas"`, `"none"`))
	bea, err := cluster.Open(cluster.Config{Kubeconfig: b.l.User(t, "bea"), Namespace: "blind"})
	if err != nil {
		t.Fatal(err)
	}
	e := b.in(t, "blind", func(c *kube.Config) {
		c.Cluster, c.Log = bea, slog.New(slog.DiscardHandler)
	})
	l := takes(1, forever, 500, 64)
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	r := gone(t, e, l.Ref)
	if r.Cause != engine.Limited || !strings.Contains(r.Message, "exceeded quota: team, requested: limits.cpu=500m, used: limits.cpu=0, limited: limits.cpu=400m") {
		t.Errorf("%+v", r)
	}
	b.l.Kubectl(t, "wait", "--for=delete", "--namespace=blind", "secrets,pods", "-l", "coxswain.sh/allocation=1", "--timeout=5m")
}

// testRanges: a limit range's defaults are the job's; what it does not allow is refused, with
// its name and the numbers.
func testRanges(t *testing.T, b *bench) {
	b.l.Apply(t, `apiVersion: v1
kind: Namespace
metadata: {name: ranged}
---
apiVersion: v1
kind: LimitRange
metadata: {name: small, namespace: ranged}
spec: {limits: [{type: Container, default: {memory: 96Mi}, max: {cpu: 200m, memory: 1Gi}}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: team, namespace: ranged}
spec: {hard: {limits.cpu: "1", limits.memory: 4Gi}}
`)
	b.counted(t, "ranged", "0")
	e := b.in(t, "ranged", nil)
	l := takes(1, forever, 100, 0) // memory is not asked for, and the quota wants to know it
	begin(t, e, l)
	if got := b.l.Kubectl(t, "get", "pods", "--namespace=ranged", "-o", "jsonpath={.items[*].spec.containers[*].resources.limits.memory}"); got != "96Mi" {
		t.Errorf("memory: %q", got)
	}
	big := takes(2, forever, 300, 64)
	if err := e.Launch(t.Context(), big); err != nil {
		t.Fatal(err)
	}
	r := gone(t, e, big.Ref)
	if r.Cause != engine.Refused || !strings.Contains(r.Message, "namespace ranged: limit range small: a container may have at most cpu=200m, and the job's has 300m") {
		t.Errorf("%+v", r)
	}
}

// testNoNamespace: a namespace that is not there is waited for, with the command that makes it.
func testNoNamespace(t *testing.T, b *bench) {
	e := b.in(t, "nowhere", nil)
	l := takes(1, "#!/bin/sh\nexit 4\n", 100, 64)
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, l.Ref); r.Cause != engine.Limited || !strings.Contains(r.Message, "kubectl create namespace nowhere") {
		t.Errorf("%+v", r)
	}
}
