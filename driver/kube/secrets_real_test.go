package kube_test

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// testSecrets: a job that is nobody's has its secrets as variables and files, on all of its pods and in
// commands beside it; its pods' objects and its events have no value, and the Secret goes with the attempt.
func testSecrets(t *testing.T, b *bench, e *kube.Engine) {
	const value = "hush-hush-1234"
	l := launch(911, `#!/bin/sh
echo "script ${#TOK} $(wc -c <"$COX_SECRETS_DIR/key.pem") $(stat -c %a:%u "$COX_SECRETS_DIR/key.pem")"
srun sh -c 'echo "task $SLURM_PROCID ${#TOK} $(wc -c <"$COX_SECRETS_DIR/key.pem")"' | sort
: >/tmp/told; while ! [ -e /tmp/over ]; do sleep 0.1; done
`, "n1", "n2")
	l.Job.Spec.WorkDir = "/tmp"
	l.Job.Spec.Owner = job.Owner{User: "nobody", UID: 65534, GID: 65534}
	l.Job.Spec.Secrets = []job.Secret{{Name: "token", Env: "TOK"}, {Name: "key", File: "key.pem"}}
	for _, s := range l.Job.Spec.Secrets {
		l.Secrets = append(l.Secrets, engine.Secret{Secret: s, Value: []byte(value)})
	}
	r := begin(t, e, l)
	var said strings.Builder
	code, err := e.Exec(t.Context(), l.Ref, engine.ExecRequest{Command: []string{"sh", "-c", `while ! [ -e /tmp/told ]; do sleep 0.1; done; echo "beside ${#TOK} $(wc -c <"$COX_SECRETS_DIR/key.pem")"`}, Stdout: &said, Stderr: &said})
	if err != nil || !code.OK() || said.String() != "beside 14 14\n" {
		t.Errorf("%s, %v: %q", code, err, said.String())
	}
	if all := b.l.Kubectl(t, "get", "pods,events", "--output=yaml"); strings.Contains(all, value) {
		t.Error("a value is in a pod's object or an event")
	}
	secret := r.Native + "-secrets"
	if got := b.l.Kubectl(t, "get", "secret", secret, "--output=jsonpath={.immutable} {.metadata.ownerReferences[0].name} {.data.token}"); got != "true "+r.Native+" aHVzaC1odXNoLTEyMzQ=" {
		t.Errorf("%q", got)
	}
	if code, err := e.Exec(t.Context(), l.Ref, engine.ExecRequest{Command: []string{"touch", "/tmp/over"}}); err != nil || !code.OK() {
		t.Fatal(code, err)
	}
	if r := gone(t, e, l.Ref); !r.Exit.OK() {
		t.Errorf("%+v", r)
	}
	if log, want := printed(t, e, l), "script 14 14 400:65534\ntask 0 14 14\ntask 1 14 14\n"; log != want {
		t.Errorf("it printed\n%s", log)
	}
	if err := e.Forget(t.Context(), l.Ref); err != nil {
		t.Fatal(err)
	}
	until(t, "the Secret has gone", func() bool {
		return strings.TrimSpace(b.l.Kubectl(t, "get", "secret", secret, "--ignore-not-found")) == ""
	})
}
