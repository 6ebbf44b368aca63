package kube_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// nobody owns a directory.
func nobody(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a volume of the test's pods
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	return dir
}

// testVolumes: a job of two pods finds the pool's volumes where the paths in its script look
// for them: a claim, directories of the node, and ones of the pod with a bound. Its output file
// is on the claim.
func testVolumes(t *testing.T, b *bench) {
	top := t.TempDir()
	for dir := top; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // nobody goes through it
			t.Fatal(err)
		}
	}
	home, data, part := nobody(t, filepath.Join(top, "home", "ada")), nobody(t, filepath.Join(top, "data")), nobody(t, filepath.Join(top, "part", "x"))
	if err := os.WriteFile(filepath.Join(data, "in"), []byte("given\n"), 0o644); err != nil { //nolint:gosec // read by nobody
		t.Fatal(err)
	}
	b.l.Apply(t, fmt.Sprintf(`
{apiVersion: v1, kind: PersistentVolume, metadata: {name: home}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], storageClassName: by-hand, persistentVolumeReclaimPolicy: Retain, hostPath: {path: %q}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: home, namespace: default}, spec: {storageClassName: by-hand, volumeName: home, accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}
`, filepath.Join(top, "home")))

	c := b.config(t, t.TempDir())
	for prefix, text := range map[string]string{"/home": "pvc:home", "/data": "hostPath:" + data + ",ro", "/part": "hostPath:" + filepath.Dir(part) + ",sub=x", "/scratch": "emptyDir:1Gi", "/fast": "emptyDir:1Mi,memory"} {
		v, err := settings.ParseVolume(text)
		if err != nil {
			t.Fatal(err)
		}
		c.Terms.Paths = append(c.Terms.Paths, settings.Path{Prefix: prefix, Volume: v})
	}
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clear(t, e) })

	l := launch(1, `#!/bin/sh
set -e
srun sh -c 'echo $SLURM_PROCID > /home/ada/rank.$SLURM_PROCID'
echo "in $PWD: $(cat /data/in)"
if touch /data/new 2>/dev/null; then echo "/data is not read-only"; fi
echo x > /part/y
dd if=/dev/zero of=/scratch/big bs=1M count=4 2>/dev/null
if dd if=/dev/zero of=/fast/big bs=1M count=4 2>/dev/null; then echo "/fast has no bound"; fi
`, "n1", "n2")
	l.Job.Spec.Owner = job.Owner{User: "nobody", UID: 65534, GID: 65534}
	l.Job.Spec.WorkDir, l.Job.Spec.Output.Stdout = "/home/ada", "/home/ada/out.%j"
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, l.Ref); !r.Exit.OK() {
		t.Errorf("%+v", r)
	}
	for name, want := range map[string]string{filepath.Join(home, "out.101"): "in /home/ada: given\n", filepath.Join(home, "rank.0"): "0\n", filepath.Join(home, "rank.1"): "1\n", filepath.Join(part, "y"): "x\n"} {
		if text, err := os.ReadFile(name); string(text) != want {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}

	// A directory that its volume does not have: nothing of the job runs anywhere else.
	l = launch(2, "#!/bin/sh\necho ran >/home/ada/ran\n", "n1")
	l.Job.Spec.WorkDir = "/home/bob"
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	r := gone(t, e, l.Ref)
	if _, err := os.Stat(filepath.Join(home, "ran")); err == nil || r.Exit.OK() || r.Cause == engine.Exited || !strings.Contains(r.Message, "/home/bob") {
		t.Errorf("%v: %+v", err, r)
	}
}

// testGlut: a job that has more on its node's disk than its pod may is ended by the kubelet, and has
// failed: it is not one of a node that was lost, which would be queued again and do the same.
func testGlut(t *testing.T, b *bench) {
	v, err := settings.ParseVolume("emptyDir:1Mi")
	if err != nil {
		t.Fatal(err)
	}
	c := b.config(t, t.TempDir())
	c.Terms.Paths, c.Terms.WorkDir = []settings.Path{{Prefix: "/scratch", Volume: v}}, settings.WorkDirEmpty
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clear(t, e) })
	l := launch(1, "#!/bin/sh\ndd if=/dev/zero of=/scratch/big bs=1M count=50 2>/dev/null\nexec sleep 600\n", "n4")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, l.Ref); r.Cause != engine.Exited || r.Exit.Signal != 9 || !strings.Contains(r.Message, "used more of the node's disk than it may") {
		t.Errorf("%+v", r)
	}
}

// testShape: what a pool and a job say of pods is so in the containers: the node's network, on
// which the members of a gang find each other, the size of /dev/shm, the capability, the token.
func testShape(t *testing.T, b *bench) {
	c := b.config(t, t.TempDir())
	c.Terms.Shape = render.Shape{SharedMemory: 1 << 20, ServiceAccount: "default", LockMemory: true, Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"example.org/net": "b"}}
	c.Terms.Allow = []string{"host_network"}
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clear(t, e) })
	l := launch(1, `#!/bin/sh
srun sh -c 'echo rank $SLURM_PROCID of $SLURM_NTASKS; if dd if=/dev/zero of=/dev/shm/x bs=1M count=2 2>/dev/null; then echo no bound; fi'
grep CapBnd /proc/self/status
test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo token
test -e /sys/class/net/eth0 || echo no network of its own
exec sleep 600
`, "n1", "n2")
	l.Job.Spec.Pod = &job.Pod{HostNetwork: true}
	t.Cleanup(func() {
		if t.Failed() {
			said, err := b.l.Try(context.Background(), "", "logs", "-l", "coxswain.sh/job=101", "--prefix", "--tail=40") // of others, too
			pods, _ := b.l.Try(context.Background(), "", "get", "pods", "-o", "yaml")
			t.Logf("%v\n%s\n%s", err, said, pods)
		}
	})
	name := begin(t, e, l).Native + "-0"
	for what, want := range map[string]string{"{.spec.hostNetwork}": "true", "{.metadata.labels.team}": "a", `{.metadata.annotations.example\.org/net}`: "b"} {
		if got := b.l.Kubectl(t, "get", "pod", name, "-o", "jsonpath="+what); got != want {
			t.Errorf("%s is %q", what, got)
		}
	}
	log := b.l.Prints(t, "default", name, "token\n")
	t.Log(log)
	for _, want := range []string{"rank 0 of 2", "rank 1 of 2", "CapBnd:\t0000000000004000"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
	if strings.Contains(log, "no bound") {
		t.Errorf("/dev/shm is not bounded:\n%s", log)
	}
}
