package lab_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// begin starts a lab that has to leave nothing behind.
func begin(t *testing.T, c lab.Config) *lab.Lab {
	t.Helper()
	before := settings(t)
	var l *lab.Lab
	t.Cleanup(func() { // the last of all
		if l == nil {
			return
		}
		left(t, l.Dir)
		if after := settings(t); after != before {
			t.Errorf("the kernel's settings were %q and are %q", before, after)
		}
	})
	began := time.Now()
	l = lab.Start(t, c)
	t.Logf("started in %s", time.Since(began))
	return l
}

// settings are those that a kubelet would change.
func settings(t *testing.T) string {
	t.Helper()
	var all []string
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "net/ipv4/ip_forward"} {
		b, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name+"="+strings.TrimSpace(string(b)))
	}
	return strings.Join(all, " ")
}

// left wants nothing of a lab that has ended.
func left(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is there", dir)
	}
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, []byte(dir)) {
			t.Errorf("%s is left: %q", name, b)
		}
	}
	if b, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(b, []byte(dir)) {
		t.Errorf("mounts are left: %v\n%s", err, b)
	}
	if groups, err := filepath.Glob("/sys/fs/cgroup/*/" + filepath.Base(dir)); err != nil || len(groups) > 0 {
		t.Errorf("control groups are left: %v, %q", err, groups)
	}
	if _, err := net.InterfaceByName("ck" + strings.TrimPrefix(filepath.Base(dir), "cox-kube-")); err == nil {
		t.Error("its link is there")
	}
}

// TestControlPlanes: two run beside each other; one has the API of native gangs. Users have
// the rights that they are given. What was acknowledged is there after every part was killed.
func TestControlPlanes(t *testing.T) {
	t.Run("usual", func(t *testing.T) {
		t.Parallel()
		l := begin(t, lab.Config{})
		if out := l.Kubectl(t, "api-resources", "--api-group=scheduling.k8s.io", "-o", "name"); strings.Contains(out, "podgroups") {
			t.Errorf("serves %q", out)
		}
		l.Kubectl(t, "create", "configmap", "kept", "--from-literal=a=b")
		ann := l.User(t, "ann", "readers")
		if out, err := l.Try(t.Context(), "", "--kubeconfig", ann, "get", "configmap", "kept"); err == nil || !strings.Contains(err.Error(), `User "ann" cannot get`) {
			t.Errorf("ann reads what she may not: %q, %v", out, err)
		}
		l.Kubectl(t, "create", "rolebinding", "readers", "--clusterrole=view", "--group=readers")
		for _, name := range []string{"etcd", "apiserver", "controller-manager", "scheduler"} {
			l.Kill(t, name)
			l.Restart(t, name)
		}
		if out := l.Kubectl(t, "--kubeconfig", ann, "get", "configmap", "kept", "-o", "jsonpath={.data.a}"); out != "b" {
			t.Errorf("kept %q", out)
		}
	})
	t.Run("native gangs", func(t *testing.T) {
		t.Parallel()
		c := lab.NativeGangs()
		c.NoScheduler = true
		l := begin(t, c)
		if out := l.Kubectl(t, "api-resources", "--api-group=scheduling.k8s.io", "-o", "name"); !strings.Contains(out, "podgroups.scheduling.k8s.io") {
			t.Errorf("serves %q", out)
		}
	})
}

// TestFakes: pods are bound to nodes without machines by their GPUs, and run.
func TestFakes(t *testing.T) {
	t.Parallel()
	l := begin(t, lab.Config{})
	l.Fake(t, lab.Fake{Name: "f1"}, lab.Fake{Name: "f2", Capacity: map[string]string{"cpu": "4", "memory": "1Gi", "nvidia.com/gpu": "2"}, Labels: map[string]string{"rack": "r2"}})
	l.Fake(t, lab.Fake{Name: "f3", Capacity: map[string]string{"cpu": "4", "memory": "1Gi"}})
	pod := `---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {nodeSelector: {%s}, containers: [{name: c, image: none, resources: {limits: {nvidia.com/gpu: %d}}}]}
`
	l.Apply(t, fmt.Sprintf(pod, "a", "", 8)+fmt.Sprintf(pod, "b", "rack: r2", 2)+fmt.Sprintf(pod, "c", "rack: r2", 1))
	l.Kubectl(t, "wait", "--for=condition=Ready", "pod", "a", "b", "--timeout=5m")
	l.Kubectl(t, "wait", "--for=condition=PodScheduled=false", "pod", "c", "--timeout=5m")
	if out := l.Kubectl(t, "get", "pods", "-o", `jsonpath={range .items[*]}{.metadata.name}:{.spec.nodeName} {end}`); out != "a:f1 b:f2 c:" {
		t.Errorf("bound as %q", out)
	}
}

const crew = `apiVersion: v1
kind: Service
metadata: {name: crew}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: crew}, ports: [{name: hello, port: 8000}]}
`

// member is a pod that shows its name to others, reads that of another by the name that the
// Service gives it, and ends with a code of its own when it is told to.
func member(i, of int) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: p%[1]d, labels: {app: crew}}
spec:
  hostname: p%[1]d
  subdomain: crew
  nodeSelector: {kubernetes.io/hostname: n%[1]d}
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  dnsConfig: {searches: [crew.default.svc.cluster.local]}
  containers:
  - name: c
    image: %[2]s
    resources: {requests: {cpu: 50m}, limits: {memory: 64Mi}}
    command: [sh, -c]
    args:
    - |
      mkdir /tmp/served && hostname >/tmp/served/name && httpd -p 8000 -h /tmp/served
      until at=$(nslookup -type=a p%[3]d.crew.default.svc.cluster.local | awk '/^Name/ {found=1} /^Address/ && found {print $NF}') && [ -n "$at" ]; do sleep 0.2; done
      until name=$(wget -qO- http://$at:8000/name); do sleep 0.2; done
      echo "$(hostname) met $name at $at"
      until [ -e /tmp/end ]; do sleep 0.1; done
      while [ -e /proc/$(cat /tmp/end) ]; do sleep 0.1; done # who said so would be killed with us
      exit $((10 + %[1]d))
`, i, lab.Base, (i%of)+1)
}

// TestPods: four nodes start, and run a pod each, which find each other. Their logs and exit
// codes are seen through the apiserver, and a command runs in them.
func TestPods(t *testing.T) {
	t.Parallel()
	l := begin(t, lab.Config{Kubelets: 4})
	manifest := crew
	for i := range l.Nodes {
		manifest += member(i+1, len(l.Nodes))
	}
	began := time.Now()
	l.Apply(t, manifest)
	l.Kubectl(t, "wait", "--for=condition=Ready", "pod", "--selector=app=crew", "--timeout=5m")
	t.Logf("pods ready after %s", time.Since(began))
	for i := range l.Nodes {
		pod, other := fmt.Sprintf("p%d", i+1), fmt.Sprintf("p%d", (i+1)%len(l.Nodes)+1)
		at := l.Kubectl(t, "get", "pod", other, "-o", "jsonpath={.status.podIP}")
		want := fmt.Sprintf("%s met %s at %s", pod, other, at)
		for {
			out := l.Kubectl(t, "logs", pod)
			if out == want {
				break
			}
			if out != "" {
				t.Fatalf("%s says %q, want %q", pod, out, want)
			}
			if t.Context().Err() != nil || time.Since(began) > 2*time.Minute {
				t.Fatalf("%s says nothing", pod)
			}
		}
	}
	for i, node := range l.Nodes {
		pod := fmt.Sprintf("p%d", i+1)
		l.Kubectl(t, "exec", pod, "--", "sh", "-c", "echo $$ >/tmp/part && mv /tmp/part /tmp/end")
		l.Kubectl(t, "wait", "--for=jsonpath={.status.phase}=Failed", "pod", pod, "--timeout=5m")
		got := l.Kubectl(t, "get", "pod", pod, "-o", "jsonpath={.spec.nodeName} {.status.containerStatuses[0].state.terminated.exitCode}")
		if want := fmt.Sprintf("%s %d", node, 11+i); got != want {
			t.Errorf("%s: node and code %q, want %q", pod, got, want)
		}
	}
	l.Kubectl(t, "delete", "pod", "--all", "--wait", "--timeout=5m")
}
