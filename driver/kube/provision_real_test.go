package kube_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// waiting is a storage class whose claims have no volume before somebody says for which node.
const waiting = "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: lab-waits}, provisioner: lab/hand, volumeBindingMode: WaitForFirstConsumer}\n"

// provisions makes a directory for each claim of that class, as a provisioner does: once a node
// is chosen, and for that node.
func provisions(t *testing.T, l *lab.Lab) {
	t.Helper()
	l.Apply(t, waiting)
	top := t.TempDir()
	for dir := top; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // nobody goes through it
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	k := openBy(t, l.Kubeconfig())
	made := map[string]bool{}
	go func() {
		defer close(ended)
		cluster.Follow(ctx, k, cluster.Resource{Version: "v1", Name: "persistentvolumeclaims"}, cluster.Selection{}, cluster.Follower[corev1.PersistentVolumeClaim]{Each: func(c *corev1.PersistentVolumeClaim, deleted bool) {
			node := c.Annotations["volume.kubernetes.io/selected-node"]
			if deleted || node == "" || made[string(c.UID)] || c.Status.Phase != corev1.ClaimPending {
				return
			}
			made[string(c.UID)] = true
			dir := filepath.Join(top, string(c.UID))
			err := errors.Join(os.MkdirAll(dir, 0o777), os.Chmod(dir, 0o777)) //nolint:gosec // a volume of the test's pods
			if err == nil {
				_, err = l.Try(ctx, fmt.Sprintf(`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pv-%s"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce","ReadWriteMany"],"storageClassName":"lab-waits","persistentVolumeReclaimPolicy":"Retain","hostPath":{"path":%q},
"claimRef":{"apiVersion":"v1","kind":"PersistentVolumeClaim","namespace":%q,"name":%q,"uid":%q},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":[%q]}]}]}}}}`, c.UID, dir, c.Namespace, c.Name, c.UID, node), "apply", "-f", "-")
			}
			if err != nil && ctx.Err() == nil {
				t.Errorf("a volume for claim %s: %v", c.Name, err)
			}
		}})
	}()
}

// testEphemeral: a volume that is made with each pod is there, on the node that was chosen for
// it, and goes with its pod.
func testEphemeral(t *testing.T, b *bench) {
	provisions(t, b.l)
	c := b.config(t, t.TempDir())
	set := func(paths map[string]string) {
		c.Terms.Paths, c.Terms.WorkDir = nil, settings.WorkDirEmpty
		for prefix, text := range paths {
			v, err := settings.ParseVolume(text)
			if err != nil {
				t.Fatal(err)
			}
			c.Terms.Paths = append(c.Terms.Paths, settings.Path{Prefix: prefix, Volume: v})
		}
	}
	open := func() *kube.Engine {
		e, err := kube.New(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.clear(t, e) })
		return e
	}
	set(map[string]string{"/scratch": "ephemeral:1Mi,class=lab-waits", "/more": "ephemeral:1Mi,class=lab-waits"})
	e := open()
	l := launch(1, "#!/bin/sh\nsrun sh -c 'echo $SLURM_PROCID >/scratch/mine; ls /more /scratch | tr \"\\n\" \" \"; echo rank $(cat /scratch/mine)' | sort\n", "n1", "n2")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, l.Ref); !r.Exit.OK() || r.Cause != engine.Exited {
		t.Errorf("%+v", r)
	}
	if log := printed(t, e, l); strings.Count(log, "mine rank") != 2 || !strings.Contains(log, "rank 0") || !strings.Contains(log, "rank 1") {
		t.Errorf("the job says %q", log)
	}
	if err := e.Forget(t.Context(), l.Ref); err != nil {
		t.Fatal(err)
	}
	b.l.Emptied(t, "default", "pvc", "--field-selector=metadata.name!=home") // they go with their pods
}
