package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// overlay makes of the manifests what a lab has: the images of its own, a volume that is a
// folder of the node n1 which everybody may write to, as provisioners of folders make it.
const overlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [%s, volume.yaml]
configMapGenerator:
  - {name: coxswain, namespace: coxswain, behavior: replace, files: [cox.yaml]}
patches:
  - target: {kind: PersistentVolumeClaim}
    patch: '[{"op": "add", "path": "/spec/storageClassName", "value": ""}]'
`

const volume = `apiVersion: v1
kind: PersistentVolume
metadata: {name: coxswain}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 10Gi}
  persistentVolumeReclaimPolicy: Retain
  claimRef: {kind: PersistentVolumeClaim, namespace: coxswain, name: coxswain}
  hostPath: {path: /var/lib/coxswain-volume}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n1]}]}]}}
`

// kubeInside: the server runs in the cluster, as the manifests and scripts/image.sh make it. A
// gang that is submitted over a forwarded port runs; the server's pod is deleted while a job
// runs, and the next one goes on with it: nothing is lost, and nothing begins twice.
// Seen to fail with the state in an emptyDir.
func kubeInside(t *testing.T, l *lab.Lab) {
	t.Helper()
	s := &insideSite{slurmSite: &slurmSite{dir: t.TempDir()}, l: l}
	s.deploy(t)
	s.forward(t)
	t.Setenv("COX_TOKEN", s.exec(t, "token", "create", "--admin"))
	s.eventually(t, `k8s .* up `, "pool", "list")
	s.ok(t, "nothing is missing", "pool", "check", "k8s")
	s.ok(t, "pool k8s runs gangs as it should", "verify", "k8s", "--dir", "/tmp")

	gang := s.file(t, "gang.sh", "#SBATCH -N2 --ntasks-per-node=1 --chdir=/tmp\nsrun -l sh -c 'echo rank $SLURM_PROCID of $SLURM_NTASKS as $(id -u)'\n")
	id := s.submitted(t, "k8s", gang)
	s.ok(t, "COMPLETED", "wait", id)
	s.ok(t, "1: rank 1 of 2 as 65532", "logs", id)

	// Without a token, from within: a script by the standard input.
	c := l.Command(t.Context(), "exec", "--namespace=coxswain", "--stdin", "deploy/coxswain", "--", "cox", "submit", "--wait", "-")
	c.Stdin = strings.NewReader("#!/bin/sh\necho by exec\n")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("by exec: %v: %s", err, out)
	}

	long := s.file(t, "long.sh", "#SBATCH -N2 --chdir=/tmp\necho began in try $SLURM_RESTART_COUNT.\nwhile [ ! -e /tmp/go ]; do sleep 0.2; done\necho over\n")
	id = s.submitted(t, "k8s", long)
	s.eventually(t, `began`, "logs", id)
	was := l.Kubectl(t, "get", "pods", "--namespace=coxswain", "--output=name")
	of := []string{"get", "pods", "--namespace=cox", "--selector=coxswain.sh/job=" + id, "--output=jsonpath={.items[*].metadata.uid}"}
	pods := l.Kubectl(t, of...)
	l.Kubectl(t, "delete", "--namespace=coxswain", was)
	l.Kubectl(t, "rollout", "status", "--namespace=coxswain", "--timeout=170s", "deployment/coxswain")
	if now := l.Kubectl(t, "get", "pods", "--namespace=coxswain", "--output=name"); now == was || strings.Contains(now, "\n") {
		t.Fatalf("after %s there is %s", was, now)
	}
	s.forward(t) // the other went with its pod
	s.eventually(t, `RUNNING`, "show", id)
	if now := l.Kubectl(t, of...); now != pods || len(strings.Fields(pods)) != 2 {
		t.Errorf("the job's pods were %s, and are %s", pods, now)
	}
	s.ok(t, "", "exec", id, "--", "touch", "/tmp/go")
	s.ok(t, "COMPLETED", "wait", id)
	if out := s.ok(t, "over\n", "logs", id); strings.Count(out, "began in try") != 1 {
		t.Errorf("it began more than once:\n%s", out)
	}
	if out := s.ok(t, "gang", "history"); !strings.Contains(out, "long") {
		t.Errorf("the history has\n%s", out)
	}
}

// insideSite is a server in a cluster, at the end of a forwarded port.
type insideSite struct {
	*slurmSite

	l   *lab.Lab
	end func()
}

// deploy applies the manifests and waits for the server.
func (s *insideSite) deploy(t *testing.T) {
	t.Helper()
	l := s.l
	made := exec.CommandContext(t.Context(), "../../scripts/image.sh", "-o", s.dir)
	out, err := made.Output()
	if err != nil {
		t.Fatalf("%v: %v", made, err)
	}
	for f := range strings.FieldsSeq(string(out)) {
		l.Import(t, f)
	}
	open := filepath.Join(l.Dir, "n1", "lib", "coxswain-volume")
	if err := os.Mkdir(open, 0o777); err != nil { //nolint:gosec // as provisioners make it
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil { //nolint:gosec // as provisioners make it
		t.Fatal(err)
	}
	dir := filepath.Join(s.dir, "overlay")
	base, err := filepath.Abs(manifests)
	if err == nil {
		base, err = filepath.Rel(dir, base)
	}
	if err != nil {
		t.Fatal(err)
	}
	conf, err := os.ReadFile(manifests + "/cox.yaml")
	if err != nil {
		t.Fatal(err)
	}
	image := regexp.MustCompile(`(?m)^( *image:).*$`)
	for name, text := range map[string]string{
		"kustomization.yaml": fmt.Sprintf(overlay, base), "volume.yaml": volume,
		"cox.yaml": image.ReplaceAllString(string(conf), "$1 "+lab.Base),
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.Kubectl(t, "apply", "--kustomize", dir)
	if _, err := l.Try(t.Context(), "", "rollout", "status", "--namespace=coxswain", "--timeout=170s", "deployment/coxswain"); err != nil {
		said, _ := l.Try(t.Context(), "", "describe", "pods", "--namespace=coxswain")
		logs, _ := l.Try(t.Context(), "", "logs", "--namespace=coxswain", "--all-pods", "deployment/coxswain")
		t.Fatalf("%v\n%s\n%s", err, said, logs)
	}
}

// exec runs cox in the server's pod.
func (s *insideSite) exec(t *testing.T, args ...string) string {
	t.Helper()
	return s.l.Kubectl(t, append([]string{"exec", "--namespace=coxswain", "deploy/coxswain", "--", "cox"}, args...)...)
}

// forward has the server be at a port of this machine until the next call.
func (s *insideSite) forward(t *testing.T) {
	t.Helper()
	if s.end != nil {
		s.end()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	c := s.l.Command(ctx, "port-forward", "--namespace=coxswain", "deploy/coxswain", ":7461")
	out, err := c.StdoutPipe()
	if err == nil {
		c.Stderr = c.Stdout
		err = c.Start()
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	s.end = func() { cancel(); _ = c.Wait() }
	t.Cleanup(s.end)
	said := bufio.NewScanner(out)
	for said.Scan() {
		if m := regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+)`).FindStringSubmatch(said.Text()); m != nil {
			s.server = "http://" + m[1]
			go func() {
				for said.Scan() { // until it ends
				}
			}()
			return
		}
	}
	t.Fatal("no port is forwarded")
}
