package kube_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/preflight"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// othersPod is a pod of others that sleeps. Spec is more of its specification.
func othersPod(name, spec string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: %s, command: [sleep, '3600']}]%s}\n", name, lab.Base, spec)
}

const (
	reservedRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: bob}
rules:
- {apiGroups: [""], resources: [pods, pods/binding, bindings], verbs: [create, get, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bob}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bob}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
`
	everywhereSet = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: watcher}
spec:
  selector: {matchLabels: {app: watcher}}
  template:
    metadata: {labels: {app: watcher}}
    spec:
      terminationGracePeriodSeconds: 0
      tolerations: [{operator: Exists}]
      nodeSelector: {kubernetes.io/hostname: n4}
      containers: [{name: c, image: ` + lab.Base + `, command: [sleep, '3600'], resources: {requests: {cpu: 10m}}}]
`
)

// others asks as a person who is not the pool's, and keeps nothing.
type others struct {
	b      *bench
	config string
}

func (o *others) try(stdin string, args ...string) (string, error) {
	return o.b.l.Try(context.Background(), stdin, append([]string{"--kubeconfig", o.config}, args...)...)
}

func (o *others) dry(manifest string) error {
	_, err := o.try(manifest, "create", "--dry-run=server", "-f", "-")
	return err
}

// testReserve: nodes are kept for a pool on a real control plane. What goes round the taint gets
// on without the policy, and is refused with it; what has to run everywhere is let through; our
// own work runs; the pool's end gives all back.
func testReserve(t *testing.T, b *bench) {
	l := b.l
	bob := &others{b, l.User(t, "bob", "team")}
	l.Apply(t, reservedRole)
	c := b.config(t, t.TempDir())
	c.Terms.Reserve, c.Terms.Selector = true, map[string]string{"kubernetes.io/hostname": "n4"}
	l.Apply(t, othersPod("early", ", nodeName: n4"))
	l.Apply(t, othersPod("bearing", ", schedulerName: none, tolerations: [{operator: Exists}]"))
	l.Apply(t, othersPod("waiting", ", schedulerName: none"))
	l.Kubectl(t, "wait", "--for=condition=Ready", "pod/early", "--timeout=5m")
	t.Cleanup(func() {
		_, _ = l.Try(context.Background(), "", "delete", "--wait=false", "pods/early", "pods/bearing", "pods/waiting", "ds/watcher", "clusterroles/bob", "clusterrolebindings/bob",
			"validatingadmissionpolicies/coxswain-kube", "validatingadmissionpolicybindings/coxswain-kube", "namespaces/infra")
	})
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clear(t, e) })
	if _, err := e.Nodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	taint := "jsonpath={.spec.taints[?(@.key=='coxswain.sh/pool')].value}"
	l.Kubectl(t, "wait", "node/n4", "--for="+taint+"=kube", "--timeout=5m")
	if got := l.Kubectl(t, "get", "node", "n1", "-o", taint); got != "" {
		t.Errorf("n1, which is not the pool's, has the taint %q", got)
	}

	direct := othersPod("direct", ", nodeName: n4")
	if err := bob.dry(direct); err != nil {
		t.Errorf("without the policy the taint alone keeps off a pod with nodeName: %v", err)
	}
	policyIs(t, e, engine.Missing, "there is no admission policy coxswain-kube")
	p, err := preflight.PolicyManifest(&c.Terms, settings.Subject{Kind: "User", Name: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	l.Apply(t, p)
	for end := time.Now().Add(patience); bob.dry(direct) == nil; { // the API server begins to go by it when it has read it
		if time.Now().After(end) {
			t.Fatal("the policy refuses nothing")
		}
	}
	refusals(t, l, bob)
	policyIs(t, e, engine.Found, "coxswain-kube keeps others off")

	l.Apply(t, everywhereSet)
	l.Kubectl(t, "rollout", "status", "ds/watcher", "--timeout=5m")
	until(t, "others hold one pod and a DaemonSet's of n4", func() bool { // pods of an earlier test may be about to go
		if _, err := e.Nodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		m, _, err := e.Machine(t.Context(), "n4")
		if err != nil {
			t.Fatal(err)
		}
		return m.Others.Daemons == 1 && m.Others.Pods == 2 && m.Others.Take.CPU == 10
	})
	own := launch(1, "#!/bin/sh\nexit 4\n", "n4")
	if err := e.Launch(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, own.Ref); r.Cause != engine.Exited || r.Exit.Status != 4 {
		t.Errorf("our own job: %+v", r)
	}
	if err := e.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := l.Kubectl(t, "get", "node", "n4", "-o", taint) + l.Kubectl(t, "get", "configmap", "coxswain-kube", "--ignore-not-found"); got != "" {
		t.Errorf("the pool has left %q", got)
	}
	for end := time.Now().Add(patience); bob.dry(direct) != nil; { // as before
		if time.Now().After(end) {
			t.Fatalf("the pool has left, and n4 is kept: %v", bob.dry(direct))
		}
	}
	if got := l.Kubectl(t, "get", "pod", "early", "-o", "jsonpath={.status.phase}"); got != "Running" {
		t.Errorf("what ran before is %s", got)
	}
}

// refusals holds what others ask for against what the policy says of it.
func refusals(t *testing.T, l *lab.Lab, bob *others) {
	kept, bears := "node n4 is kept for the pool kube", "this pod bears the taint coxswain.sh/pool=kube"
	for _, x := range []struct{ what, spec, want string }{
		{"nodeName", ", nodeName: n4", kept},
		{"nodeName of a node that is nobody's", ", nodeName: n1", ""},
		{"a toleration of our key", ", tolerations: [{key: coxswain.sh/pool, operator: Exists}]", bears},
		{"a toleration of our taint", ", tolerations: [{key: coxswain.sh/pool, value: kube, effect: NoSchedule}]", bears},
		{"a toleration of everything", ", tolerations: [{operator: Exists}]", bears},
		{"a toleration of everything with our effect", ", tolerations: [{operator: Exists, effect: NoSchedule}]", bears},
		{"a toleration of everything with another effect", ", tolerations: [{operator: Exists, effect: NoExecute}]", ""},
		{"a toleration of another pool's taint", ", tolerations: [{key: coxswain.sh/pool, value: other}]", ""},
		{"a toleration of something else", ", tolerations: [{key: nvidia.com/gpu, operator: Exists}]", ""},
	} {
		wants(t, x.what, bob.dry(othersPod("x", x.spec)), x.want)
	}
	wants(t, "a pod that says that it is a DaemonSet's", bob.dry(strings.Replace(othersPod("x", ", nodeName: n4"), "{name: x}",
		"{name: x, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: 3b1e0b34-9c2c-4a44-8d6e-1f0f5b8f3a11, controller: true}]}", 1)), kept)
	_, err := bob.try("", "patch", "pod", "waiting", "--dry-run=server", "--type=json", "-p", `[{"op":"add","path":"/spec/tolerations/-","value":{"operator":"Exists"}}]`)
	wants(t, "a toleration that is added later", err, bears)
	_, err = bob.try("", "patch", "pod", "bearing", "--dry-run=server", "-p", `{"metadata":{"labels":{"a":"b"}}}`)
	wants(t, "another change of a pod that bore it before", err, "")
	bind := func(node string) string {
		return `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"waiting"},"target":{"apiVersion":"v1","kind":"Node","name":"` + node + `"}}`
	}
	for _, at := range []string{"pods/waiting/binding", "bindings"} {
		_, err = bob.try(bind("n4"), "create", "--raw", "/api/v1/namespaces/default/"+at+"?dryRun=All", "-f", "-")
		wants(t, "a binding by "+at, err, kept)
	}
	_, err = bob.try(bind("n1"), "create", "--raw", "/api/v1/namespaces/default/pods/waiting/binding?dryRun=All", "-f", "-")
	wants(t, "a binding to a node that is nobody's", err, "")
	l.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: infra, labels: {coxswain.sh/everywhere: 'true'}}\n")
	for end := time.Now().Add(patience); ; { // it has its account a little later
		_, err = bob.try(othersPod("x", ", tolerations: [{operator: Exists}]"), "create", "--namespace=infra", "--dry-run=server", "-f", "-")
		if err == nil || time.Now().After(end) {
			break
		}
	}
	wants(t, "a namespace that may go everywhere", err, "")
}

// wants holds an error against what it should say; empty: there should be none.
func wants(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

// policyIs wants that the look finds the policy so.
func policyIs(t *testing.T, e *kube.Engine, state engine.FindingState, text string) {
	t.Helper()
	found, err := e.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.What == "policy" {
			if f.State != state || !strings.HasPrefix(f.Text, text) || state != engine.Found && !strings.HasSuffix(f.Mend, "--set reserve=true --print-policy=user:admin | kubectl apply -f -") {
				t.Errorf("the look finds %+v, want %s %q", f, state, text)
			}
			return
		}
	}
	t.Errorf("the look says nothing of the policy: %+v", found)
}
