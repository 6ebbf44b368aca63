package kube_test

import (
	"os"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// delegated is an engine on a lab whose own scheduler chooses the nodes.
func (b *bench) delegated(t *testing.T) *kube.Engine {
	t.Helper()
	b.delegates = true
	return b.open(t, t.TempDir())
}

// folded is a job whose claim is of the pool as a whole.
func folded(allocation uint64, script string, nodes int) *engine.Launch {
	l := launch(allocation, script, make([]string, nodes)...)
	l.Claims = []fleet.Claim{{Node: "@kube", Tasks: nodes}}
	return l
}

// TestNativeGangs: pods that the cluster's own scheduler places begin together or not at all, and
// keep the contract of engines: with COX_LONG all of it, else what has to do with nodes that
// others choose.
//
// Seen to fail with: nodes that are not in the journal (Restart/GoesOn).
func TestNativeGangs(t *testing.T) {
	t.Parallel()
	c := lab.NativeGangs()
	c.Kubelets = 4
	a := audited(t, c)
	b := newBench(a.l)
	topics := []string{"Avoid", "Gang", "Restart"}
	if os.Getenv("COX_LONG") != "" {
		topics = nil
	}
	t.Run("Conformance", func(t *testing.T) {
		b.delegates = true
		conform(t, b, topics)
	})
	e := b.delegated(t)
	t.Run("Runs", func(t *testing.T) {
		l := folded(1, "#!/bin/sh\nexit 9\n", 2)
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		r := gone(t, e, l.Ref)
		if r.Cause != engine.Exited || r.Exit.Status != 9 || len(r.Nodes) != 2 || r.Nodes[0].Node == r.Nodes[1].Node {
			t.Errorf("%+v", r)
		}
	})
	t.Run("Rights", func(t *testing.T) {
		native, _ := gang.OfKind(render.Native)
		native.Resource.Version = "v1alpha2"
		terms := settings.Terms{Pool: "k8s-d", Namespace: "gangs", Image: lab.Base, AgentImage: lab.Cox}
		a.prove(t, "dan", terms, &native, func(allocation uint64, script string) *engine.Launch { return folded(allocation, script, 2) })
	})
	t.Run("PodsOfTasks", func(t *testing.T) { testGangOfTasks(t, b, e) })
	t.Run("Manifests", func(t *testing.T) { testManifestGangs(t, b, e) })
	t.Run("NoneOfFive", func(t *testing.T) {
		l := folded(2, forever, 5)
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		r := await(t, e, l.Ref, "waiting with the scheduler's words", func(r engine.Report) bool { return r.Message != "" })
		if r.Phase != engine.Accepted || len(r.Nodes) != 0 || !strings.HasPrefix(r.Message, "Kubernetes' scheduler has no nodes for its 5 pods, which begin together: ") {
			t.Errorf("%+v", r)
		}
		if bound := b.l.Kubectl(t, "get", "pods", "-l", "coxswain.sh/allocation=2", "-o", "jsonpath={.items[*].spec.nodeName}"); strings.TrimSpace(bound) != "" {
			t.Errorf("of a gang that has no room, pods are on %q", bound)
		}
		if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
			t.Fatal(err)
		}
		if r := gone(t, e, l.Ref); r.Cause != engine.Stopped || !r.Started.IsZero() {
			t.Errorf("%+v", r)
		}
	})
	t.Run("Preempted", func(t *testing.T) { testPreempted(t, b, e) })
	if os.Getenv("COX_LONG") != "" {
		t.Run("Claims", func(t *testing.T) {
			gangsWithClaims(t, b.l, settings.Terms{Gang: render.Native}, "too few free devices")
		})
	}
}

// TestNoGangs: a cluster without gangs takes single pods; more are refused with the choices.
func TestNoGangs(t *testing.T) {
	t.Parallel()
	b := newBench(lab.Start(t, lab.Config{Kubelets: 1}))
	e := b.delegated(t)
	err := e.Launch(t.Context(), folded(1, forever, 2))
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(fault.Remedy(err), "volcano") {
		t.Errorf("%v, %q", err, fault.Remedy(err))
	}
	d := &engine.JobDraft{Spec: folded(1, forever, 2).Job.Spec, Script: []byte(forever)}
	if err := e.Admit(t.Context(), d); fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "pool kube: the job has 2 pods that have to begin together, and the cluster has nothing that does that") || !strings.Contains(fault.Remedy(err), "placed=true") {
		t.Errorf("at the door: %v, %q", err, fault.Remedy(err))
	}
	l := folded(2, "#!/bin/sh\nexit 4\n", 1)
	if err := e.Admit(t.Context(), &engine.JobDraft{Spec: l.Job.Spec, Script: l.Script}); err != nil {
		t.Errorf("one node, at the door: %v", err)
	}
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, l.Ref); r.Exit.Status != 4 || len(r.Nodes) != 1 || r.Nodes[0].Node != "n1" {
		t.Errorf("%+v", r)
	}
}
