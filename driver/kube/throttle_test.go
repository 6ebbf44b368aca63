package kube_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine"
)

// throttled: by its priority and fairness the apiserver has no turn for the driver's user, and
// says 429 to all it asks, with the time after which to ask again.
func (w *weather) throttled(t *testing.T) {
	file := w.l.User(t, "busy")
	w.l.Kubectl(t, "create", "clusterrolebinding", "busy", "--clusterrole=cluster-admin", "--user=busy")
	w.l.Apply(t, `apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: one}
spec: {type: Limited, limited: {nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: busy}
spec:
  matchingPrecedence: 10
  priorityLevelConfiguration: {name: one}
  rules:
  - subjects: [{kind: User, user: {name: busy}}]
    resourceRules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"]}]
`)
	e := w.open(t, file, t.TempDir())
	until(t, "the nodes are seen", func() bool { _, err := e.Nodes(t.Context()); return err == nil })
	release := w.occupy(t, file)
	l := launch(1, "#!/bin/sh\n", "h1", "h2")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	await(t, e, l.Ref, "refused", func(r engine.Report) bool { return strings.Contains(strings.ToLower(r.Message), "too many") })
	release()
	r := await(t, e, l.Ref, "running", func(r engine.Report) bool { return r.Phase == engine.Running })
	release = w.occupy(t, file)
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	if all := w.h.pods(t, r.Native); len(all) != 2 {
		t.Errorf("pods %q", all)
	}
	release()
	if r := gone(t, e, l.Ref); r.Cause != engine.Stopped {
		t.Errorf("%+v", r)
	}
	w.h.ledger(t, e.Engine, e.root)
}

// occupy has a call of a user be under way who has one turn, until it is released: it does not
// end what it sends. All other calls are refused.
func (w *weather) occupy(t *testing.T, file string) (release func()) {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	k := openBy(t, file)
	until(t, "the user has no turn", func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		body, in := io.Pipe()
		over := make(chan struct{})
		go func() {
			defer close(over)
			q, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.l.Server()+"/api/v1/namespaces/default/configmaps", body)
			q.Header.Set("Content-Type", "application/json")
			if r, err := client.Do(q); err == nil {
				_ = r.Body.Close()
			}
		}()
		release = func() { cancel(); _ = in.Close(); <-over }
		go func() { _, _ = in.Write([]byte("{")) }()
		for range 3 { // it may be another call that has the turn, and this one is refused
			brief, end := context.WithTimeout(ctx, time.Second) // it would be asked again and again
			err := k.Get(brief, cluster.Namespaces, "", "default", nil)
			end()
			var a *cluster.Answer
			select {
			case <-over:
				err = nil
			default:
			}
			if !errors.As(err, &a) || a.Code != http.StatusTooManyRequests {
				release()
				return false
			}
		}
		return true
	})
	return release
}
