package kube_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/preflight"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// of is a job of an account.
func of(account string, l *engine.Launch) *engine.Launch {
	l.Job.Spec.Account = account
	return l
}

// testAccounts: accounts have namespaces of their own with quotas of the same name, of which each
// counts its own; what runs stays where it is when the settings change.
func testAccounts(t *testing.T, b *bench) {
	for _, ns := range []string{"acc-nlp", "acc-vision"} {
		b.l.Apply(t, strings.ReplaceAll(quotaOf4, "NAME", ns))
		b.counted(t, ns, "0")
	}
	c := b.config(t, t.TempDir())
	c.Terms.Namespaces = map[string]string{"nlp": "acc-nlp", "vision": "acc-vision"}
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	t.Cleanup(func() {
		if !closed {
			b.clear(t, e)
		}
	})
	first := of("nlp", takes(1, forever, 300, 64))
	begin(t, e, first) // from now on the quotas are seen
	second, third := of("vision", takes(2, forever, 300, 64)), of("", takes(3, "#!/bin/sh\nexit 4\n", 300, 64))
	begin(t, e, second)
	if err := e.Launch(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, third.Ref); r.Exit.Status != 4 {
		t.Errorf("of no account: %+v", r)
	}
	for allocation, want := range map[string]string{"1": "acc-nlp", "2": "acc-vision", "3": "default"} {
		if got := b.l.Kubectl(t, "get", "secrets", "--all-namespaces", "-l", "coxswain.sh/allocation="+allocation+",coxswain.sh/job=10"+allocation, "-o", "jsonpath={.items[*].metadata.namespace}"); got != want {
			t.Errorf("the root of %s is in %q, want %s", allocation, got, want)
		}
	}
	more := of("nlp", takes(4, forever, 200, 64))
	if err := e.Launch(t.Context(), more); fault.KindOf(err) != fault.Exhausted || !strings.HasPrefix(err.Error(), "quota team of namespace acc-nlp: limits.cpu: 200m asked for, 100m of 400m left") {
		t.Errorf("beyond its account's quota: %v", err)
	}

	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	closed = true
	c.Terms.Namespaces, c.Terms.OnlyNamed = map[string]string{"nlp": "acc-vision"}, true // the same quota as vision's
	again, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clear(t, again) })
	for _, l := range []*engine.Launch{first, second} { // seen where they are, and not looked for elsewhere
		if err := again.Signal(t.Context(), l.Ref, 18, engine.ToBatch); err != nil {
			t.Errorf("signal to %s: %v", l.Ref, err)
		}
		if err := again.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
			t.Fatal(err)
		}
		if r := gone(t, again, l.Ref); r.Cause != engine.Stopped {
			t.Errorf("%+v", r)
		}
		if err := again.Forget(t.Context(), l.Ref); err != nil {
			t.Fatal(err)
		}
	}
	for _, ns := range []string{"acc-nlp", "acc-vision"} {
		b.l.Kubectl(t, "wait", "--for=delete", "--namespace="+ns, "secrets,pods", "-l", "coxswain.sh/allocation in (1,2)", "--timeout=5m")
	}
	next := of("nlp", takes(5, "#!/bin/sh\nexit 6\n", 100, 64))
	if err := again.Launch(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, again, next.Ref); r.Exit.Status != 6 {
		t.Errorf("%+v", r)
	}
	if got := b.l.Kubectl(t, "get", "secrets", "--all-namespaces", "-l", "coxswain.sh/allocation=5", "-o", "jsonpath={.items[*].metadata.namespace}"); got != "acc-vision" {
		t.Errorf("by the new settings it is in %q", got)
	}
	if err := again.Launch(t.Context(), of("vision", takes(6, forever, 100, 64))); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "account vision has no namespace in the cluster") {
		t.Errorf("an account that has none: %v", err)
	}
}

// testAccountLacksNamespace: of two namespaces one is not there. Jobs of its account are told the
// command that makes it, though nobody may do anything there; those of the other run. Once it is
// there with its roles, that there is room is said, and the job runs.
func testAccountLacksNamespace(t *testing.T, b *bench) {
	terms := settings.Terms{Pool: "kube", Namespace: "acc-base", Placed: true, Namespaces: map[string]string{"nlp": "acc-late"}}
	space := func(ns string) { b.l.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+ns+"}\n") }
	roles := preflight.Manifest(&terms, nil, settings.Subject{Kind: "User", Name: "cat"})
	space("acc-base")
	space("acc-late")
	b.l.Apply(t, roles)
	b.l.Kubectl(t, "delete", "namespace", "acc-late", "--timeout=5m")
	cat, err := cluster.Open(cluster.Config{Kubeconfig: b.l.User(t, "cat"), Namespace: "acc-base"})
	if err != nil {
		t.Fatal(err)
	}
	e := b.in(t, "acc-base", func(c *kube.Config) { c.Cluster, c.Terms.Namespaces = cat, terms.Namespaces })
	late := of("nlp", takes(1, "#!/bin/sh\nexit 3\n", 100, 64))
	if err := e.Launch(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, late.Ref); r.Cause != engine.Limited || !strings.Contains(r.Message, "there is no namespace acc-late; an administrator makes it: kubectl create namespace acc-late") {
		t.Errorf("%+v", r)
	}
	other := of("law", takes(2, "#!/bin/sh\nexit 5\n", 100, 64))
	if err := e.Launch(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, other.Ref); r.Exit.Status != 5 {
		t.Errorf("in the other namespace: %+v", r)
	}
	space("acc-late")
	b.l.Apply(t, roles)
	room := rooms(t, e)
	select {
	case <-room:
	case <-time.After(patience):
		t.Fatal("that the namespace is there nobody says")
	}
	late.Ref.Allocation = 3
	if err := e.Launch(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, late.Ref); r.Exit.Status != 3 {
		t.Errorf("%+v", r)
	}
}

// rooms follows what an engine says of room.
func rooms(t *testing.T, e *kube.Engine) <-chan struct{} {
	room := make(chan struct{}, 10)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go e.WatchCapacity(ctx, func(...job.ID) { room <- struct{}{} })
	return room
}
