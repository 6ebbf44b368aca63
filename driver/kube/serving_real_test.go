package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// replicaScript serves files, of which "ready" is what the readiness probe asks for.
const replicaScript = `#!/bin/sh
mkdir -p /tmp/served && echo "$PORT_HTTP" >/tmp/served/port && : >/tmp/served/ready && : >/tmp/well
exec httpd -f -p "$PORT" -h /tmp/served
`

// untilServes waits for endpoints of an attempt.
func untilServes(t *testing.T, e *kube.Engine, ref engine.Ref, want func(engine.Endpoints) bool) engine.Endpoints {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last engine.Endpoints
	found := errors.New("found")
	err := e.WatchEndpoints(ctx, func(s engine.Endpoints) error {
		if s.Ref == ref {
			if last = s; want(s) {
				return found
			}
		}
		return nil
	})
	if !errors.Is(err, found) {
		t.Fatalf("%v; the last endpoints are %+v", err, last)
	}
	return last
}

// beginsSlowly: a replica that answers its readiness probe is not ready until its startup probe has passed, and its
// liveness probe, which fails until then, does not end it.
func beginsSlowly(t *testing.T, e *kube.Engine, ref engine.Ref) {
	t.Helper()
	run := func(command string) {
		t.Helper()
		if code, err := e.Exec(t.Context(), ref, engine.ExecRequest{Command: []string{"sh", "-c", command}}); err != nil || !code.OK() {
			t.Fatalf("%s: %s, %v", command, code, err)
		}
	}
	begun := untilServes(t, e, ref, func(engine.Endpoints) bool { return true })
	if begun.Ready {
		t.Error("it is ready before it has started")
	}
	run("rm /tmp/well; for i in 1 2 3 4 5 6; do wget -q -O /dev/null http://127.0.0.1:$PORT/ready || exit 1; sleep 0.5; done")
	if s := untilServes(t, e, ref, func(engine.Endpoints) bool { return true }); s.Ready {
		t.Error("its port answers, and it is ready before it has started")
	}
	run(": >/tmp/well; : >/tmp/begun")
	untilServes(t, e, ref, func(s engine.Endpoints) bool { return s.Ready })
}

// testServing: a replica's kubelet probes it, its address is the pod's, clients in the cluster have a
// Service; a drain waits; a liveness probe that fails is a crash.
func testServing(t *testing.T, b *bench, e *kube.Engine) {
	plan := func(n uint64) *engine.Launch {
		l := launch(n, replicaScript, "n1")
		l.Job.Spec.WorkDir = "/tmp"
		l.Job.Spec.Part = &job.Part{Controller: "service/chat", Revision: 1, Index: uint32(n)}
		l.Job.Spec.Serve = &job.Serve{
			Ports:     []job.Port{{Name: "http"}},
			Readiness: &job.Probe{HTTP: "/ready", Failures: 1, Timeout: time.Minute}, // a machine under load takes more than a second to begin one
			Liveness:  &job.Probe{Exec: []string{"sh", "-c", "test \"$PORT\" = \"$PORT_HTTP\" && test -e /tmp/well"}, Failures: 1, Timeout: time.Minute},
		}
		return l
	}
	first, second := plan(901), plan(902)
	second.Job.Spec.Serve.Startup = &job.Probe{Exec: []string{"test", "-e", "/tmp/begun"}, Failures: 1000}
	for _, l := range []*engine.Launch{first, second} {
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	ready := untilServes(t, e, first.Ref, func(s engine.Endpoints) bool { return s.Ready })
	if ready.List[0].Port != "http" || ready.Job != first.Job.ID {
		t.Errorf("%+v", ready)
	}
	beginsSlowly(t, e, second.Ref)
	fetch := func() string { // from another pod: the addresses of pods need not answer here
		var said strings.Builder
		url := "http://" + net.JoinHostPort(ready.List[0].Host, strconv.Itoa(ready.List[0].Number)) + "/port"
		if code, err := e.Exec(t.Context(), second.Ref, engine.ExecRequest{Command: []string{"wget", "-q", "-O", "-", url}, Stdout: &said, Stderr: &said}); err != nil || !code.OK() {
			t.Errorf("%s, %v: %s", code, err, said.String())
		}
		return said.String()
	}
	if got, want := fetch(), fmt.Sprintln(ready.List[0].Number); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if got := b.l.Kubectl(t, "get", "service", "chat", "--output=jsonpath={.spec.ports[0].port} {.spec.ports[0].targetPort} {.metadata.ownerReferences[*].kind}"); strings.TrimSpace(got) != "80 http Secret Secret" {
		t.Errorf("the Service for clients: %q", got)
	}
	if err := e.Stop(t.Context(), first.Ref, engine.Stop{Drain: time.Hour, Grace: time.Minute, Reason: "it is replaced"}); err != nil {
		t.Fatal(err)
	}
	untilServes(t, e, first.Ref, func(s engine.Endpoints) bool { return !s.Ready })
	fetch()
	code, err := e.Exec(t.Context(), second.Ref, engine.ExecRequest{Command: []string{"rm", "/tmp/well"}})
	if err != nil || !code.OK() {
		t.Fatal(code, err)
	}
	if r := gone(t, e, second.Ref); r.Cause != engine.Exited || r.Exit.OK() || !strings.Contains(r.Message, "liveness probe") {
		t.Errorf("%+v", r)
	}
	if err := e.Stop(t.Context(), first.Ref, engine.Stop{Grace: time.Minute, Reason: "it is replaced"}); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, first.Ref); r.Cause != engine.Stopped || r.Message != "it is replaced" {
		t.Errorf("%+v", r)
	}
}
