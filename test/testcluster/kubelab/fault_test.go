package lab_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// sleeper is a pod on a node that goes on for long.
func sleeper(name, node string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: %s
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: %s, command: [sh, -c, "echo begun; sleep 1000"]}]
`, name, node, lab.Base)
}

// TestNodeFaults: a pod outlives its kubelet and its containerd, whose successors know it. A
// node that lost its power is said to be silent, and is there again with its pods ended.
func TestNodeFaults(t *testing.T) {
	t.Parallel()
	l := begin(t, lab.Config{Kubelets: 2, Silent: 15 * time.Second})
	l.Apply(t, sleeper("a", "n1")+sleeper("b", "n2"))
	l.Kubectl(t, "wait", "--for=condition=Ready", "pod", "a", "b", "--timeout=5m")
	started := func(pod string) string {
		return l.Kubectl(t, "get", "pod", pod, "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].containerID}")
	}
	before := started("a")
	for _, name := range []string{"kubelet.n1", "containerd.n1"} {
		l.Kill(t, name)
		l.Restart(t, name)
		until(t, func() bool {
			out, err := l.Try(t.Context(), "", "exec", "a", "--", "echo", "well")
			return err == nil && out == "well\n"
		})
		if after := started("a"); after != before {
			t.Errorf("without %s it was %q and is %q", name, before, after)
		}
	}
	l.Crash(t, "n2")
	l.Kubectl(t, "wait", "--for=condition=Ready=Unknown", "node", "n2", "--timeout=5m")
	l.Boot(t, "n2")
	l.Kubectl(t, "wait", "--for=condition=Ready", "node", "n2", "--timeout=5m")
	until(t, func() bool { return !strings.HasPrefix(started("b"), "Running") })
	l.Apply(t, sleeper("c", "n2"))
	l.Kubectl(t, "wait", "--for=condition=Ready", "pod", "c", "--timeout=5m")
}

// until waits for what no event tells: that a kubelet serves again, that processes and links of others
// are no more.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within two minutes")
		}
	}
}

// victim has TestKilledTest's child be one that is killed.
const victim = "COX_KUBE_VICTIM"

// TestKilledTest: of a test that is killed no process is left, no container, no link; and
// the next lab removes its folder and its control groups.
func TestKilledTest(t *testing.T) {
	if os.Getenv(victim) != "" {
		l := lab.Start(t, lab.Config{Kubelets: 1})
		l.Apply(t, sleeper("a", "n1"))
		l.Kubectl(t, "wait", "--for=condition=Ready", "pod", "a", "--timeout=5m")
		fmt.Println("lab " + l.Dir)
		select {}
	}
	if os.Getenv("COX_KUBE") == "" {
		t.Skip("COX_KUBE is not set")
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledTest$", "-test.v")
	c.Env = append(os.Environ(), victim+"=1")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var dir, said string
	for s := bufio.NewScanner(out); dir == "" && s.Scan(); said += s.Text() + "\n" {
		dir, _ = strings.CutPrefix(s.Text(), "lab ")
		if dir == s.Text() {
			dir = ""
		}
	}
	if dir == "" {
		_ = c.Wait()
		if strings.Contains(said, "--- SKIP") {
			t.Skip(said)
		}
		t.Fatalf("no lab: %s", said)
	}
	if n := members(t, dir); n < 4 { // the node's first process, containerd, kubelet, the pod's
		t.Errorf("only %d processes are in the control groups", n)
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	until(t, func() bool { return members(t, dir) == 0 })
	until(t, func() bool {
		_, err := net.InterfaceByName("ck" + strings.TrimPrefix(filepath.Base(dir), "cox-kube-"))
		return err != nil
	})
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "alive"), old, old); err != nil {
		t.Fatal(err)
	}
	begin(t, lab.Config{})
	left(t, dir)
}

// members is how many processes a lab has in its control groups.
func members(t *testing.T, dir string) int {
	t.Helper()
	count := 0
	err := filepath.WalkDir("/sys/fs/cgroup/pids/"+filepath.Base(dir), func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "cgroup.procs" {
			b, err := os.ReadFile(name)
			count += strings.Count(string(b), "\n")
			return err
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return count
}
