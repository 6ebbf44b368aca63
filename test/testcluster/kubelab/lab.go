// Package lab starts whole clusters of real Kubernetes for tests, and breaks them.
//
// The model. A Lab is one cluster in a folder of its own: etcd, apiserver,
// controller-manager, scheduler, and as many kubelets as asked for, each a node with a
// containerd, a disk and control groups of its own that runs real pods, which find each
// other by the names of headless Services (CoreDNS). All are built from the modules in
// test/kube. Pods have the images that Base and others name, made here without a registry.
//
// Guarantees. A lab has a network namespace of its own, joined to this machine by one link:
// so all labs use the same ports and addresses inside, and run beside each other. A node has
// namespaces of mounts, processes and control groups besides. Everything ends with the test,
// even if that is killed: no process, mount, address or interface is left, and no kernel
// setting was changed. What such a test leaves in the folder for temporary files, and its
// empty control groups, the next lab removes.
//
// What it does not have: kube-proxy (a Service with an address of its own leads nowhere, but
// the apiserver's and the DNS's do), a way from pods to the world, and nodes on a machine
// without version 1 of control groups.
//
// With COX_K3S the control plane and the kubelets are those of K3s (K3s).
//
// It needs root and Debian, and is for tests alone: without COX_KUBE=1 they are skipped, and
// where Kubernetes cannot be had too, unless CI is set.
//
// Where what is:
//
//	lab.go turn.go install.go       a cluster from its begin to its end, and kubectl; whose turn it is; what is built
//	control.go pki.go second.go     the control plane, its certificates; a second apiserver, and ways to it
//	etcd.go                         etcd: its members, which of them leads, what it forgets
//	k3s.go                          the same of K3s
//	daemon.go frost.go spoil.go configure.go    what is killed, frozen and spoiled, and begun anew with other settings
//	breaks.go                       what of that storms draw from
//	node.go nodeconf.go groups.go   machines: namespaces, kubelet and containerd; their files; control groups
//	wire.go image.go                the network; images
//	fake.go                         nodes without machines
//	devices.go claims.go            devices of a plugin, and those of claims
//	batch.go given.go               schedulers of gangs, built or given
//	await.go                        what a test waits for
package lab

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// Config says what a cluster is to be.
type Config struct {
	Kubelets    int           // nodes that run pods: n1, n2 …; at most 16
	Names       []string      // of these nodes, where they are to have others
	Gates       []string      // feature gates to switch on, of all parts: NAME or NAME=false
	Runtime     []string      // API versions to serve beyond the usual: GROUP/VERSION
	NoScheduler bool          // nobody binds pods but the test
	Silent      time.Duration // after it a node whose kubelet is silent is not ready; 0: never
	APIServer   []string      // more arguments of the apiserver
	Etcds       int           // members of etcd: "etcd", "etcd.2" …; 0: one
}

// NativeGangs has Kubernetes' own gangs of pods, which are an experiment of 1.36.
func NativeGangs() Config {
	return Config{
		Gates:   []string{"GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption", "WorkloadWithJob"},
		Runtime: []string{"scheduling.k8s.io/v1alpha2"},
	}
}

// Lab is a cluster that runs.
type Lab struct {
	Dir   string   // its folder
	Nodes []string // names

	config   Config
	programs string // the folder of kube, coredns, kwok
	wire     *wire
	pki      *authority
	admin    *tls.Config // of a user who may do everything
	nodes    map[string]*node

	mu      sync.Mutex
	daemons map[string]*daemon
	seconds int // apiservers beside the first
	fakes   int // calls that have added nodes without machines
}

// prefix begins the name of a lab's folder.
const prefix = "cox-kube-"

// labSuffix is what a lab's folder, control groups and link have in their names.
func labSuffix(dir string) string { return strings.TrimPrefix(filepath.Base(dir), prefix) }

// Start starts a cluster, which ends with the test. A test that cannot have one is skipped. While
// there are two others of this process it waits for the end of one.
func Start(t testing.TB, c Config) *Lab {
	t.Helper()
	if os.Getenv("COX_KUBE") == "" {
		t.Skip("COX_KUBE is not set: make kube starts clusters of real Kubernetes")
	}
	if c.Etcds > 1 && K3s() != "" {
		t.Skip("several members of etcd are Kubernetes' own, and K3s has its own")
	}
	testcluster.EndWithGo()
	asked := time.Now()
	t.Cleanup(turns.takeTurn(c.Kubelets))
	t.Logf("its turn came after %s", time.Since(asked).Round(time.Second))
	programs := installKubernetes(t, c.Kubelets > 0)
	dir := testcluster.Folder(t, prefix, func(dir string) error { return removeGroups(labSuffix(dir)) })
	l := &Lab{Dir: dir, config: c, programs: programs, daemons: map[string]*daemon{}, nodes: map[string]*node{}}
	t.Cleanup(func() { l.stopAll(t) })
	if err := l.startAll(t.Context()); err != nil {
		t.Fatalf("a cluster of real Kubernetes does not start: %v\n%s", err, l.Logs())
	}
	return l
}

// startAll starts everything.
func (l *Lab) startAll(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(l.Dir, "log"), 0o755); err != nil {
		return err
	}
	l.Nodes = slices.Clone(l.config.Names)
	for i := len(l.Nodes); i < l.config.Kubelets; i++ {
		l.Nodes = append(l.Nodes, fmt.Sprintf("n%d", i+1))
	}
	var err error
	if l.wire, err = connectNetwork(ctx, labSuffix(l.Dir), l.Nodes); err != nil {
		return err
	}
	if l.pki, err = newAuthority(); err != nil {
		return err
	}
	if l.admin, err = l.pki.clientTLS("admin", "system:masters"); err != nil {
		return err
	}
	if err := l.writeControl(); err != nil {
		return err
	}
	var nodes error
	var prepared sync.WaitGroup
	prepared.Go(func() { nodes = l.prepareNodes(ctx) })
	err = l.beginControl(ctx)
	prepared.Wait()
	if err = errors.Join(err, nodes); err != nil || len(l.Nodes) == 0 {
		return err
	}
	return l.beginKubelets(ctx)
}

// beginControl starts the control plane, which is ready when there is an account for pods.
func (l *Lab) beginControl(ctx context.Context) error {
	for _, d := range l.controlPlane() {
		if err := l.startDaemon(ctx, d); err != nil {
			return err
		}
	}
	if K3s() != "" {
		for _, name := range controlParts {
			l.daemons[name] = l.daemons[controlParts[0]]
		}
	}
	return testcluster.Await(ctx, "the account of namespace default", func() bool {
		return l.getPath(ctx, "/api/v1/namespaces/default/serviceaccounts/default") == nil
	})
}

// stopAll ends everything.
func (l *Lab) stopAll(t testing.TB) {
	if t.Failed() {
		t.Logf("the cluster's logs:\n%s", l.Logs())
	}
	for _, d := range l.daemons {
		d.killDaemon()
	}
	for _, n := range l.nodes {
		n.killNode()
	}
	if l.wire != nil {
		l.wire.close()
	}
	var err error
	for range 100 { // what was killed may still be ending
		if err = errors.Join(removeGroups(labSuffix(l.Dir)), os.RemoveAll(l.Dir)); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("what a cluster leaves: %v", err)
}

// Kubeconfig is the file of a user who may do everything.
func (l *Lab) Kubeconfig() string { return filepath.Join(l.Dir, "admin.conf") }

// Server is the apiserver's address.
func (l *Lab) Server() string { return "https://" + l.wire.server }

// User makes a user who is nobody but by name and groups, and returns the user's kubeconfig.
func (l *Lab) User(t testing.TB, name string, groups ...string) string {
	t.Helper()
	file := filepath.Join(l.Dir, "user-"+strings.NewReplacer(":", "-", "/", "-").Replace(name)+".conf")
	if err := l.pki.writeKubeconfig(file, l.Server(), name, groups...); err != nil {
		t.Fatal(err)
	}
	return file
}

// Command is kubectl as the user who may do everything, not begun yet.
func (l *Lab) Command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(l.programs, "kube"), append([]string{"kubectl", "--kubeconfig", l.Kubeconfig()}, args...)...)
	c.Env = append(os.Environ(), "KUBECACHEDIR="+filepath.Join(l.Dir, "cache"), "HOME="+l.Dir, "GOGC=off") // it ends before it needs to collect
	return c
}

// Try runs kubectl as the user who may do everything and returns what it printed. What is not
// done within six minutes is an error.
func (l *Lab) Try(ctx context.Context, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 6*time.Minute)
	defer cancel()
	c := l.Command(ctx, args...)
	c.Stdin = strings.NewReader(stdin)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %q: %w: %s", args, err, said.String())
	}
	return string(out), err
}

// Kubectl is Try, whose failure is the test's.
func (l *Lab) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := l.Try(t.Context(), "", args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// Apply applies a manifest.
func (l *Lab) Apply(t testing.TB, manifest string) {
	t.Helper()
	if _, err := l.Try(t.Context(), manifest, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// Logs are the last lines of all logs.
func (l *Lab) Logs() string {
	var b strings.Builder
	found, _ := filepath.Glob(filepath.Join(l.Dir, "log", "*"))
	for _, name := range found {
		text, _ := os.ReadFile(name)
		if len(text) == 0 {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&b, "%s:\n", filepath.Base(name))
		for _, line := range lines[max(0, len(lines)-12):] {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	return b.String()
}
