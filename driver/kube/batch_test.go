package kube_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/preflight"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// TestVolcano: gangs of pods that Volcano begins, on fake nodes, by an account that has the
// rights of the manifest alone. On a node with a kubelet there are devices that are claimed: as it
// is installed, Volcano gives claims none. Seen to fail with a minMember of 1: neither gang ever has
// five nodes.
func TestVolcano(t *testing.T) {
	l := lab.Start(t, lab.Config{Kubelets: 1})
	l.Volcano(t)
	eight(t, l)
	terms := settings.Terms{Gang: render.Volcano}
	deadlock(t, l, terms, "Volcano")
	t.Run("PodsOfTasks", func(t *testing.T) { gangsOfTasks(t, l, terms, "10 minAvailable") })
	t.Run("ClaimsIgnored", func(t *testing.T) { claimsIgnored(t, l, terms) })
	l.VolcanoGives(t)
	t.Run("Claims", func(t *testing.T) { gangsWithClaims(t, l, terms, "2 minAvailable") })
}

// TestKAI: gangs of pods that KAI begins, from the folder that COX_KAI names.
func TestKAI(t *testing.T) {
	l := lab.Start(t, lab.Config{})
	l.KAI(t)
	eight(t, l)
	deadlock(t, l, settings.Terms{Gang: render.KAI, Queue: "research"}, "KAI's queue research")
}

// TestCoscheduling: the same of coscheduling's, which gives claims devices.
func TestCoscheduling(t *testing.T) {
	l := lab.Start(t, lab.Config{Kubelets: 1})
	terms := settings.Terms{Gang: render.Coscheduling, Scheduler: l.Coscheduling(t)}
	eight(t, l)
	deadlock(t, l, terms, "its 5 pods")
	t.Run("PodsOfTasks", func(t *testing.T) { gangsOfTasks(t, l, terms, "resource gap: map[cpu:") })
	t.Run("Claims", func(t *testing.T) { gangsWithClaims(t, l, terms, "too few free devices") })
}

// TestKueue: gangs of pods that Kueue admits, by quota. Seen to fail with all gates taken away
// instead of ours alone.
func TestKueue(t *testing.T) {
	l := lab.Start(t, lab.Config{})
	l.Kueue(t)
	eight(t, l)
	l.Apply(t, `apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: gpus}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: research, namespace: default}
spec: {clusterQueue: gpus}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cpus}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: any, resources: [{name: cpu, nominalQuota: 60}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: tasks, namespace: default}
spec: {clusterQueue: cpus}
`)
	terms := settings.Terms{Gang: render.Kueue, Approximate: true, Queue: "research"}
	deadlock(t, l, terms, "Kueue's queue research for quota")
	t.Run("Claims", func(t *testing.T) { claimsRefused(t, l, terms) })
	racks(t, l)
	terms.Queue = "tasks"
	t.Run("PodsOfTasks", func(t *testing.T) {
		gangsOfTasks(t, l, terms, "Kueue's queue tasks for quota: couldn't assign flavors")
	})
}

// racks has gangs begin in one rack of four nodes by Kueue's Topology, and shows that one for
// which no rack has room waits, though there is quota and room on nodes of two racks, while one
// that wishes for a rack begins. Where nodes lie is read from the same Topology.
//
// Seen to fail with: the annotations left out (a gang is in two racks).
func racks(t *testing.T, l *lab.Lab) {
	for i := range 8 {
		l.Kubectl(t, "label", "node", fmt.Sprintf("f%d", i+1), "gpus=yes", fmt.Sprintf("example.com/rack=r%d", i%2+1))
	}
	l.Apply(t, `apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: racks}
spec: {levels: [{nodeLabel: example.com/rack}, {nodeLabel: kubernetes.io/hostname}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: racked}
spec: {nodeLabels: {gpus: "yes"}, topologyName: racks}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: racked}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu, cpu]
    flavors: [{name: racked, resources: [{name: nvidia.com/gpu, nominalQuota: 8}, {name: cpu, nominalQuota: 64}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: racked, namespace: default}
spec: {clusterQueue: racked}
`)
	terms := settings.Terms{Pool: "k8s-t", Gang: render.Kueue, Approximate: true, Queue: "racked"}
	terms.Within.Label = "example.com/rack"
	e := gangsBy(t, l, "bob", &terms, nil)
	taken(t, e, terms)
	found, err := e.Check(t.Context())
	if err != nil || !slices.ContainsFunc(found, func(f engine.Finding) bool {
		return f.What == "queue" && f.State == engine.Found && f.Text == "flavor racked of racked goes by Topology racks: example.com/rack"
	}) {
		t.Errorf("%+v %v", found, err)
	}
	nodes, err := e.Nodes(t.Context())
	if err != nil || len(nodes) != 8 || len(nodes[0].Path) != 1 || nodes[0].Path[0] != "r1" {
		t.Errorf("where nodes lie: %+v %v", nodes, err)
	}
	inRacks(t, l, e)
}

// inRacks launches gangs on eight nodes in two racks, of which the first two leave a node in each.
func inRacks(t *testing.T, l *lab.Lab, e *kube.Engine) {
	all := []*engine.Launch{oneEach(11, 3), oneEach(12, 3), oneEach(13, 2), oneEach(14, 2)}
	all[0].Job.Spec.Groups[0].Switches = 1 // the others by the setting
	all[3].Job.Spec.Groups[0].Wishes.Switches = job.Wish{N: 1, For: time.Hour}
	rack := func(i, n int) string {
		t.Helper()
		if err := e.Launch(t.Context(), all[i]); err != nil {
			t.Fatal(err)
		}
		await(t, e, all[i].Ref, "bound whole", func(r engine.Report) bool { return r.Phase == engine.Ready })
		if got := bound(t, l, all[i].Ref); got != n {
			t.Errorf("of %d pods %d are bound", n, got)
		}
		has := map[string]bool{}
		for _, node := range pods(t, l, all[i].Ref) {
			has[l.Kubectl(t, "get", "node", node, "--output", `jsonpath={.metadata.labels.example\.com/rack}`)] = true
		}
		return strings.Join(slices.Sorted(maps.Keys(has)), " ")
	}
	one, two := rack(0, 3), rack(1, 3)
	if one == two || len(one) != 2 || len(two) != 2 {
		t.Errorf("three pods each are in %q and in %q", one, two)
	}
	if err := e.Launch(t.Context(), all[2]); err != nil {
		t.Fatal(err)
	}
	r := await(t, e, all[2].Ref, "waiting for a rack", func(r engine.Report) bool {
		return strings.Contains(r.Message, "Kueue's queue racked") && strings.Contains(r.Message, "topology")
	})
	t.Logf("it waits: %s", r.Message)
	if n := bound(t, l, all[2].Ref); n != 0 {
		t.Errorf("of the one that no rack has room for %d pods are bound", n)
	}
	if got := rack(3, 2); got != "r1 r2" {
		t.Errorf("the one that wishes for a rack is in %q", got)
	}
	all = append(all, smallTasks(15, 6))
	all[4].Job.Spec.Groups[0].Switches = 1
	if got := rack(4, 6); len(got) != 2 { // of its four nodes two at least have two of them
		t.Errorf("six pods of tasks are in %q", got)
	}
}

// gangsBy opens an engine on the lab, for a user who has the rights of its manifest alone. The terms
// are made whole; change may be nil.
func gangsBy(t *testing.T, l *lab.Lab, user string, terms *settings.Terms, change func(*kube.Config)) *kube.Engine {
	t.Helper()
	terms.Namespace, terms.Image, terms.AgentImage = "default", lab.Base, lab.Cox
	gang, _ := gang.OfKind(terms.Gang)
	l.Apply(t, preflight.Manifest(terms, &gang, settings.Subject{Kind: "User", Name: user}))
	may, err := cluster.Open(cluster.Config{Kubeconfig: l.User(t, user)})
	if err != nil {
		t.Fatal(err)
	}
	c := kube.Config{Root: t.TempDir(), Cluster: may, Terms: *terms, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if change != nil {
		change(&c)
	}
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// deadlock is the classic one: two gangs of five pods, a GPU each, on the nodes of eight.
// One begins whole, the other not at all, and says that it waits, until the first has ended.
func deadlock(t *testing.T, l *lab.Lab, terms settings.Terms, words string) {
	terms.Pool = "k8s-a"
	e := gangsBy(t, l, "ann", &terms, nil)
	taken(t, e, terms)

	gangs := []*engine.Launch{oneEach(1, 5), oneEach(2, 5)}
	for _, g := range gangs { // both before either is bound: their pods come between each other
		if err := e.Launch(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	first, second := gangs[0].Ref, gangs[1].Ref
	whole := func(r engine.Report) bool { return len(r.Nodes) == 5 && r.Nodes[4].Phase == engine.Ready }
	won := await(t, e, engine.Ref{}, "bound whole", whole)
	if won.Ref == second {
		first, second = second, first
	}
	r := await(t, e, second, "waiting with "+words, func(r engine.Report) bool { return strings.Contains(r.Message, words) })
	t.Logf("it waits: %s", r.Message)
	if r.Phase != engine.Accepted || len(r.Nodes) != 0 {
		t.Errorf("%+v", r)
	}
	if n := bound(t, l, second); n != 0 {
		t.Errorf("of the gang that waits %d pods are bound", n)
	}
	if err := e.Stop(t.Context(), first, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	kubelets(t, l, first)
	gone(t, e, first)
	// As control does when the end is in its journal. Until then its PodGroup may count in Volcano as
	// one that is yet to be scheduled, and no other is taken in.
	if err := e.Forget(t.Context(), first); err != nil {
		t.Error(err)
	}
	await(t, e, second, "bound whole", whole)

	// What is stopped before it begins is taken away, too.
	third := oneEach(3, 5)
	if err := e.Launch(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	await(t, e, third.Ref, "waiting with "+words, func(r engine.Report) bool { return strings.Contains(r.Message, words) })
	for _, ref := range []engine.Ref{second, third.Ref} {
		if err := e.Stop(t.Context(), ref, engine.Stop{}); err != nil {
			t.Fatal(err)
		}
	}
	kubelets(t, l, second)
	for _, ref := range []engine.Ref{second, third.Ref} {
		gone(t, e, ref)
		if err := e.Forget(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
	gang, _ := gang.OfKind(terms.Gang)
	if terms.Gang == render.Kueue {
		l.Emptied(t, "default", "pods,secrets,"+gang.Resource.String())
	} else {
		l.Emptied(t, "default", "pods,secrets,services,"+gang.Resource.String(), "--selector=coxswain.sh/server")
	}
}

// taken looks whether the pool says that its gangs are of the kind that it is set to.
func taken(t *testing.T, e *kube.Engine, terms settings.Terms) {
	t.Helper()
	gang, _ := gang.OfKind(terms.Gang)
	if info, err := e.Info(t.Context()); err != nil || info.Abilities.Gang != gang.Ability() {
		t.Errorf("%+v %v", info, err)
	}
	found, err := e.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := false
	for _, f := range found {
		said = said || f.What == "gangs" && strings.HasPrefix(f.Text, string(terms.Gang)+" is taken")
		if f.State == engine.Missing {
			t.Errorf("%s: %s", f.What, f.Text)
		}
	}
	if !said {
		t.Errorf("the look does not say that %s is taken: %+v", terms.Gang, found)
	}
}

// oneEach is a job of one GPU on each of some nodes.
func oneEach(allocation uint64, nodes int) *engine.Launch {
	l := folded(allocation, forever, nodes)
	l.Job.Spec.Groups[0].PerNode.Devices = []resource.DeviceRequest{{Count: 1}}
	return l
}

// pods are those of an attempt: its name, and its node, if it has one.
func pods(t *testing.T, l *lab.Lab, ref engine.Ref) map[string]string {
	t.Helper()
	out := map[string]string{}
	text := l.Kubectl(t, "get", "pods", "--selector", fmt.Sprint("coxswain.sh/allocation=", ref.Allocation), "--output", `jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{"\n"}{end}`)
	for line := range strings.Lines(text) {
		name, node, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[name] = node
	}
	return out
}

func bound(t *testing.T, l *lab.Lab, ref engine.Ref) (n int) {
	t.Helper()
	for _, node := range pods(t, l, ref) {
		if node != "" {
			n++
		}
	}
	return n
}

// kubelets say of an attempt's pods on fake nodes that they have ended, once they are deleted.
func kubelets(t *testing.T, l *lab.Lab, ref engine.Ref) {
	t.Helper()
	for name := range pods(t, l, ref) {
		l.Kubectl(t, "wait", "--for=jsonpath={.metadata.deletionTimestamp}", "pod/"+name, "--timeout=5m")
		l.Kubectl(t, "patch", "pod", name, "--subresource=status", "--type=merge", "--patch",
			`{"status":{"phase":"Failed","containerStatuses":[{"name":"job","image":"i","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":143,"reason":"Error"}}}]}}`)
	}
}
