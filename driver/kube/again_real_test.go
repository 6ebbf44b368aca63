package kube_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// onceMore takes a lock that nobody takes away, does half of its work, and shows from then on that
// it lives. Where there is the lock already it wants that nobody lives who has it, and does the other half.
const onceMore = `#!/bin/sh
hostname >>/data/ran
if mkdir /data/lock 2>/dev/null; then
	echo x >/data/half
	while :; do date +%N >/data/beat; sleep 0.1; done
fi
was=$(cat /data/beat)
sleep 1
[ "$was" = "$(cat /data/beat)" ] || exit 9
rmdir /data/lock && mv /data/half /data/whole && exit 7
`

// testPowerLost: a node loses its power while a job runs there that has written files of the node and
// holds a lock, and is booted, which Silent does. Its kubelet says what became of the pod: the node was
// lost. Then the job is launched there again, while all of its first attempt is still in the cluster:
// it finds the lock with nobody who holds it, goes on from the files, and ends by its exit code. Of the
// first attempt nothing lives, and in the end neither the cluster nor the node's disk has anything of it.
//
// Seen to fail with: objects of an attempt that are named as those of the one before.
func testPowerLost(t *testing.T, b *bench, node string) func(t *testing.T) {
	t.Helper()
	top := t.TempDir()
	for dir := top; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // nobody goes through it
			t.Fatal(err)
		}
	}
	data := nobody(t, filepath.Join(top, "data"))
	v, err := settings.ParseVolume("hostPath:" + data)
	if err != nil {
		t.Fatal(err)
	}
	c := b.config(t, t.TempDir())
	c.Terms.Paths = []settings.Path{{Prefix: "/data", Volume: v}}
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clear(t, e) })
	attempt := func(n uint32) *engine.Launch {
		l := launch(1, onceMore, node)
		l.Ref.Attempt, l.Job.Attempt, l.Job.Spec.WorkDir = n, n, "/data"
		l.Job.Spec.Owner = job.Owner{User: "nobody", UID: 65534, GID: 65534}
		return l
	}
	first := begin(t, e, attempt(1))
	until(t, "it shows that it lives", func() bool { _, err := os.Stat(filepath.Join(data, "beat")); return err == nil })
	uid := b.l.Kubectl(t, "get", "pod", first.Native+"-0", "--output=jsonpath={.metadata.uid}")
	left := filepath.Join(b.l.Dir, node, "lib", "kubelet", "pods", uid)
	if _, err := os.Stat(left); err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T) {
		if r := gone(t, e, first.Ref); r.Cause != engine.NodeLost || r.Started.IsZero() || r.Message == "" {
			t.Errorf("%+v", r)
		}
		again := attempt(2)
		if err := e.Launch(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		r := gone(t, e, again.Ref)
		if r.Cause != engine.Exited || r.Exit.Status != 7 {
			t.Errorf("%+v", r)
		}
		if n := living(t, first, "", ""); len(n) > 0 {
			t.Errorf("processes %v of the first attempt live", n)
		}
		if _, err := os.Stat(filepath.Join(data, "whole")); err != nil {
			t.Error(err)
		}
		if ran, err := os.ReadFile(filepath.Join(data, "ran")); err != nil || string(ran) != fmt.Sprintf("%s-0\n%s-0\n", first.Native, r.Native) {
			t.Errorf("there ran %q, %v", ran, err)
		}
		for _, ref := range []engine.Ref{first.Ref, again.Ref} {
			if err := e.Forget(t.Context(), ref); err != nil {
				t.Error(err)
			}
		}
		b.l.Emptied(t, "default", "pods,secrets,services", "--selector="+render.LabelServer+"="+serverOf(t, c.Root))
		until(t, "the node's disk has nothing of the pod", func() bool { _, err := os.Stat(left); return err != nil && os.IsNotExist(err) })
	}
}
