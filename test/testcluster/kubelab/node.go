package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// node is a machine of a cluster, as far as there is one: namespaces of mounts, processes,
// control groups, and names of hosts, which its first process holds, and a disk.
type node struct {
	name  string
	index int    // counted from 0
	dir   string // its disk: lib, log and run are its /var/lib, /var/log and /run
	cmd   *exec.Cmd
	pid   int
	over  chan struct{}
}

// join begins a node's first process. $1 is the node's group in each hierarchy below the
// place where that is mounted, the others are the hierarchies: PLACE OPTIONS.
const join = `
group=$1; shift
for h in "$@"; do echo $$ >"${h%% *}/$group/cgroup.procs"; done
exec unshare --mount --pid --uts --ipc --cgroup --fork --kill-child=KILL --mount-proc bash -c "$BOOT" boot "$@"`

// boot is what it does: the node's groups in the place of this machine's, its disk, and the
// kernel's settings that a kubelet wants as files of the node's own: it finds them right and
// leaves this machine's alone. Then it waits for others' children that have ended.
const boot = `set -e
echo "$NODE" >/proc/sys/kernel/hostname
mount -t tmpfs none /sys/fs/cgroup
for h in "$@"; do mkdir "${h%% *}"; mount -t cgroup -o "${h#* }" none "${h%% *}"; done
for d in lib log; do mount --bind "$DISK/$d" /var/$d; done
mount --bind "$DISK/run" /run
setting() { echo "$2" >"$DISK/$1"; mount --bind "$DISK/$1" "/proc/sys/$(echo "$1" | tr . /)"; }
setting vm.overcommit_memory 1
setting vm.panic_on_oom 0
setting kernel.panic 10
setting kernel.panic_on_oops 1
setting kernel.keys.root_maxkeys 1000000
setting kernel.keys.root_maxbytes 25000000
touch "$DISK/up"
while :; do sleep 1000 & wait $! || :; done`

// within has a process be of the node's control groups, which those who enter its namespaces
// are not by themselves.
const within = `for g in /sys/fs/cgroup/*/cgroup.procs; do echo $$ >"$g"; done; exec "$@"`

// prepareNodes starts all nodes, but for what needs the control plane.
func (l *Lab) prepareNodes(ctx context.Context) error {
	if len(l.Nodes) == 0 {
		return nil
	}
	if err := l.writeImages(ctx); err != nil {
		return err
	}
	for i, name := range l.Nodes {
		l.nodes[name] = &node{name: name, index: i, dir: l.labFile(name)}
	}
	return l.eachNode(func(n *node) error { return errors.Join(l.bootNode(ctx, n), l.startContainerd(ctx, n)) })
}

// beginKubelets starts what needs the control plane, and waits until all nodes are ready.
func (l *Lab) beginKubelets(ctx context.Context) error {
	if err := l.startDNS(ctx); err != nil {
		return err
	}
	if err := l.eachNode(func(n *node) error { return l.startKubelet(ctx, n) }); err != nil {
		return err
	}
	return testcluster.Await(ctx, "nodes that are ready", func() bool { return l.readyNodes(ctx) == len(l.Nodes) })
}

// readyNodes counts the nodes that are ready and have no taint.
func (l *Lab) readyNodes(ctx context.Context) (count int) {
	text, err := l.readPath(ctx, "/api/v1/nodes")
	var all struct {
		Items []struct {
			Spec   struct{ Taints []struct{} }
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if err != nil || json.Unmarshal(text, &all) != nil {
		return 0
	}
	for _, n := range all.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == "Ready" && c.Status == "True" && len(n.Spec.Taints) == 0 {
				count++
			}
		}
	}
	return count
}

// eachNode does something for all nodes at once.
func (l *Lab) eachNode(do func(*node) error) error {
	var all sync.WaitGroup
	failed := make([]error, len(l.Nodes))
	for i, name := range l.Nodes {
		all.Go(func() { failed[i] = do(l.nodes[name]) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// bootNode begins a node's first process.
func (l *Lab) bootNode(ctx context.Context, n *node) error {
	n.pid = 0
	tops, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	if err := makeGroups(tops, labSuffix(l.Dir), n.name); err != nil {
		return err
	}
	for _, d := range []string{"lib/kubelet", "lib/cni", "log/pods", "run/lock", "cni"} {
		if err := os.MkdirAll(filepath.Join(n.dir, d), 0o755); err != nil {
			return err
		}
	}
	_ = os.Remove(filepath.Join(n.dir, "up")) // of an earlier life
	words := append(l.wire.nsenterArgs(), "env", "BOOT="+boot, "NODE="+n.name, "DISK="+n.dir, "bash", "-ec", join, "join", groupOf(labSuffix(l.Dir))+"/"+n.name)
	for _, h := range tops {
		words = append(words, h.at+" "+h.options)
	}
	if n.cmd, n.over, err = l.spawnProcess("node."+n.name, words); err != nil {
		return err
	}
	ended := false
	err = testcluster.Await(ctx, n.name, func() bool {
		select {
		case <-n.over:
			ended = true
		default:
		}
		_, err := os.Stat(filepath.Join(n.dir, "up"))
		return ended || err == nil
	})
	if ended {
		return fmt.Errorf("%s ended at once: %s", n.name, n.cmd.ProcessState)
	}
	if err == nil {
		n.pid, err = onlyChild(n.cmd.Process.Pid, n.over)
	}
	return err
}

// startContainerd starts a node's containerd and gives it the images.
func (l *Lab) startContainerd(ctx context.Context, n *node) error {
	if n.pid == 0 {
		return nil // it did not start, which is said
	}
	if err := l.writeNode(n); err != nil {
		return err
	}
	if err := l.startDaemon(ctx, &daemon{
		name: "containerd." + n.name, node: n, words: []string{"containerd", "-c", filepath.Join(n.dir, "containerd.toml")},
		up: func(ctx context.Context) bool { return l.runOnNode(ctx, n, "ctr", "version") == nil },
	}); err != nil {
		return err
	}
	return l.importImages(ctx, n, l.labFile("pause.tar"), l.labFile("base.tar"), l.labFile("cox.tar"))
}

// startKubelet starts a node's kubelet.
func (l *Lab) startKubelet(ctx context.Context, n *node) error {
	words := []string{
		filepath.Join(l.programs, "kube"), "kubelet", "--config=" + filepath.Join(n.dir, "kubelet.yaml"), "--kubeconfig=" + filepath.Join(n.dir, "kubelet.conf"),
		"--hostname-override=" + n.name, "--node-ip=" + nodeAddress(n.index), "-v=2",
	}
	if K3s() != "" {
		words = l.k3sAgent(n)
	}
	return l.startDaemon(ctx, &daemon{name: "kubelet." + n.name, node: n, words: words})
}

// nsenterArgs are words to stand behind for a command on the node.
func (n *node) nsenterArgs() []string {
	return []string{"nsenter", fmt.Sprintf("--target=%d", n.pid), "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--", "sh", "-ec", within, "within"}
}

// runOnNode runs a command on a node.
func (l *Lab) runOnNode(ctx context.Context, n *node, words ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	words = append(n.nsenterArgs(), words...)
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Env = append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("on %s: %q: %w: %s", n.name, words[len(n.nsenterArgs()):], err, out)
	}
	return nil
}

// killNode ends a node with all that runs on it.
func (n *node) killNode() {
	if n.over == nil {
		return
	}
	if n.pid != 0 { // the first of its processes: the others end with it
		_ = syscall.Kill(n.pid, syscall.SIGKILL)
	}
	_ = n.cmd.Process.Kill()
	<-n.over
}

// Crash ends a node as a loss of power would: pods, containerd, kubelet. Boot has it back.
func (l *Lab) Crash(t testing.TB, name string) {
	t.Helper()
	l.nodeByName(t, name).killNode()
	for _, d := range []string{"containerd.", "kubelet."} {
		l.daemonByName(t, d+name).killDaemon()
	}
}

// Boot starts a node again that has crashed. Its disk is as it was.
func (l *Lab) Boot(t testing.TB, name string) {
	t.Helper()
	n := l.nodeByName(t, name)
	run := filepath.Join(n.dir, "run") // what a machine forgets
	err := errors.Join(os.RemoveAll(run), os.MkdirAll(run, 0o755), l.bootNode(t.Context(), n), l.startContainerd(t.Context(), n), l.startKubelet(t.Context(), n))
	if err != nil {
		t.Fatalf("%s does not start again: %v\n%s", name, err, l.Logs())
	}
}

func (l *Lab) nodeByName(t testing.TB, name string) *node {
	t.Helper()
	n := l.nodes[name]
	if n == nil {
		t.Fatalf("the cluster has no node %s", name)
	}
	return n
}
