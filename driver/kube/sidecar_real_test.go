package kube_test

import (
	"context"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/engine"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// sidecars puts two containers more into each pod with the label sidecars: one that stays, and one
// that fails at once.
const sidecars = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: sidecars}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    objectSelector: {matchLabels: {sidecars: "yes"}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "stays", image: "` + lab.Base + `", command: ["sh", "-c", "trap exit TERM; sleep 600 & wait"]}},
         JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "fails", image: "` + lab.Base + `", command: ["false"]}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: sidecars}
spec: {policyName: sidecars}
`

// testSidecars: the cluster puts containers of its own into our pods. They are no members: ranks are
// as many as they were, one that fails ends nothing, and one that stays keeps no end back, nor the
// pods once the attempt is forgotten.
//
// Seen to fail with: the state of a pod's first container taken for that of the job's; an end that
// waits for all containers of a pod.
func testSidecars(t *testing.T, b *bench) {
	b.l.Apply(t, sidecars)
	t.Cleanup(func() {
		if _, err := b.l.Try(context.Background(), "", "delete", "mutatingadmissionpolicybinding/sidecars", "mutatingadmissionpolicy/sidecars"); err != nil {
			t.Error(err)
		}
	})
	until(t, "the API server goes by the policy", func() bool {
		said, err := b.l.Try(t.Context(), `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"try","labels":{"sidecars":"yes"}},"spec":{"containers":[{"name":"c","image":"`+lab.Base+`"}]}}`,
			"create", "--dry-run=server", "-o", "jsonpath={.spec.containers[*].name}", "-f", "-")
		return err == nil && said == "c stays fails"
	})
	c := b.config(t, t.TempDir())
	c.Terms.Shape.Labels = map[string]string{"sidecars": "yes"}
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clear(t, e) })
	long := launch(1, "#!/bin/sh\nsrun sh -c 'echo rank $SLURM_PROCID of $SLURM_NTASKS'\necho all said\nexec sleep 600\n", "n1", "n2")
	short := launch(2, "#!/bin/sh\nexit 4\n", "n1", "n2")
	runs := begin(t, e, long)
	said := b.l.Prints(t, "default", runs.Native+"-0", "all said\n")
	if strings.Count(said, "rank ") != 2 || !strings.Contains(said, "rank 0 of 2") || !strings.Contains(said, "rank 1 of 2") {
		t.Errorf("its ranks said\n%s", said)
	}
	for _, pod := range []string{"pod/" + runs.Native + "-0", "pod/" + runs.Native + "-1"} {
		b.l.Kubectl(t, "wait", pod, `--for=jsonpath={.status.containerStatuses[?(@.name=="fails")].state.terminated.reason}=Error`, "--timeout=5m")
	}
	if err := e.Launch(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	r := gone(t, e, short.Ref)
	if r.Cause != engine.Exited || r.Exit.Status != 4 {
		t.Errorf("%+v", r)
	}
	if got := b.l.Kubectl(t, "get", "pod", r.Native+"-0", r.Native+"-1", "-o", "jsonpath={.items[*].metadata.deletionTimestamp}"); got != "" {
		t.Errorf("for its end its pods had to be deleted, at %s", got)
	}
	if err := e.Stop(t.Context(), long.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, long.Ref); r.Cause != engine.Stopped {
		t.Errorf("%+v", r)
	}
	for _, l := range []*engine.Launch{long, short} {
		if err := e.Forget(t.Context(), l.Ref); err != nil {
			t.Error(err)
		}
	}
	b.l.Kubectl(t, "wait", "--for=delete", "pod", "-l", "sidecars=yes", "--timeout=5m")
}
