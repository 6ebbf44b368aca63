package kube_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// partialBind: of eight pods the fifth cannot be bound, or nobody knows whether it is. What
// cannot be bound ends the attempt: all its pods are deleted, nothing is free before their
// kubelets have said that they ended, and the next attempt runs on the same nodes, once. A
// binding whose answer was lost is found.
//
// Seen to fail with: a policy's refusal taken for the job's fault.
func (w *weather) partialBind(t *testing.T) {
	for _, c := range []struct {
		name string
		says string // in the report of an attempt that does not begin; empty: it begins
		act  func(t *testing.T, pod string, pass func())
	}{
		{"Policy", "h5", nil},
		{"Deleted", "being deleted", func(t *testing.T, pod string, pass func()) {
			now := int64(0)
			if err := w.h.k.Delete(t.Context(), cluster.Pods, "default", pod, cluster.Deletion{Grace: &now}); err != nil {
				t.Error(err)
			}
			pass()
		}},
		{"Elsewhere", "h8", func(t *testing.T, pod string, pass func()) {
			if err := w.h.k.Bind(t.Context(), "default", pod, "", "h8"); err != nil {
				t.Error(err)
			}
			pass()
		}},
		{"AnswerLost", "", func(_ *testing.T, _ string, pass func()) { pass(); panic(http.ErrAbortHandler) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			tp := newTap(t, w.l, w.plain)
			e := w.open(t, tp.file, t.TempDir())
			var acted atomic.Bool
			tp.set(func(rw http.ResponseWriter, q *http.Request, pass http.HandlerFunc) {
				pod, ok := strings.CutSuffix(q.URL.Path, "-4/binding")
				if !ok || c.act == nil || acted.Swap(true) {
					pass(rw, q)
					return
				}
				rec := httptest.NewRecorder()
				c.act(t, pod[strings.LastIndex(pod, "/")+1:]+"-4", func() { pass(rec, q) })
				rw.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
				rw.WriteHeader(rec.Code)
				_, _ = rw.Write(rec.Body.Bytes())
			}, nil)
			nodes := []string{"h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"}
			l := launch(1, "#!/bin/sh\n", nodes...)
			admit := func() {}
			if c.act == nil {
				admit = refuse(t, w.l, w.h.k, "h5")
			}
			if c.says != "" {
				w.notBound(t, e, l, c.says)
				admit()
				l = launch(1, "#!/bin/sh\n", nodes...)
				l.Ref.Attempt, l.Job.Attempt = 2, 2
			}
			r := begin(t, e, l)
			var want []string
			for i, n := range nodes {
				want = append(want, fmt.Sprintf("%d %s", i, n))
			}
			if all := w.h.pods(t, r.Native); !slices.Equal(all, want) {
				t.Errorf("pods %q", all)
			}
			w.h.end(t, r, 11)
			w.exits(t, e, r.Ref, 11)
			if c.act != nil && !acted.Load() {
				t.Error("nothing happened to its fifth pod")
			}
		})
	}
}

// notBound wants an attempt not to begin, for a reason. The kubelet of h2 is silent for a while,
// in which nothing is free.
func (w *weather) notBound(t *testing.T, e *noted, l *engine.Launch, says string) {
	t.Helper()
	w.h.hold("h2")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	r := await(t, e, l.Ref, "ending", func(r engine.Report) bool { return r.Phase >= engine.Ending })
	until(t, "all but one have ended", func() bool {
		var held, living int
		if _, err := cluster.List(t.Context(), w.h.k, cluster.Pods, cluster.Selection{Namespace: "default"}, func(p *corev1.Pod) error {
			switch {
			case !strings.HasPrefix(p.Name, r.Native+"-"):
			case p.Spec.NodeName == "h2":
				held++
			case p.DeletionTimestamp == nil || p.Spec.NodeName != "" && p.Status.Phase != corev1.PodFailed:
				living++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return held == 1 && living == 0
	})
	if now, err := e.Inspect(t.Context(), l.Ref); err != nil || now.Gone {
		t.Errorf("free without the word of a kubelet: %+v, %v", now, err)
	}
	w.h.release(t, "h2", r.Native+"-1")
	if r = gone(t, e, l.Ref); r.Cause != engine.Unready || !r.Started.IsZero() || !strings.Contains(r.Message, says) {
		t.Errorf("%+v, want it to say %q", r, says)
	}
}

// refuse has a policy of others that refuses bindings to a node, until what is returned is
// called.
func refuse(t *testing.T, l *lab.Lab, k *cluster.Cluster, node string) (admit func()) {
	t.Helper()
	l.Apply(t, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: theirs}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods/binding"]}]}
  validations: [{expression: "object.target.name != '`+node+`'", message: "not to `+node+`"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: theirs}
spec: {policyName: theirs, validationActions: [Deny]}
`)
	refuses := func(want bool) {
		until(t, "the policy is gone by", func() bool {
			err := k.Bind(t.Context(), "default", "none", "", node) // what is refused is refused before it is looked for
			return err != nil && (fault.KindOf(err) != fault.NotFound) == want
		})
	}
	refuses(true)
	return func() {
		t.Helper()
		l.Kubectl(t, "delete", "validatingadmissionpolicybinding/theirs", "validatingadmissionpolicy/theirs")
		refuses(false)
	}
}

// until waits for what nobody is told by an event: that an API server goes by a role or a policy that it
// has read, or has come to several objects, or that a count of the test's own has grown.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
