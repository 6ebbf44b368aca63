package kube_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/enginetest"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// bench opens engines on a lab and remembers where they live.
type bench struct {
	l         *lab.Lab
	delegates bool          // the cluster's own scheduler chooses the nodes
	turns     chan struct{} // has one for each test that is under way

	mu     sync.Mutex
	roots  map[engine.Engine]string
	closed map[engine.Engine]bool
}

func newBench(l *lab.Lab) *bench {
	return &bench{l: l, turns: make(chan struct{}, sideBySide), roots: map[engine.Engine]string{}, closed: map[engine.Engine]bool{}}
}

// config is that of an engine on the lab.
func (b *bench) config(t *testing.T, root string) kube.Config {
	t.Helper()
	c, err := cluster.Open(cluster.Config{Kubeconfig: b.l.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	return kube.Config{
		Root: root, Cluster: c, Terms: settings.Terms{Pool: "kube", Namespace: "default", Placed: !b.delegates, Image: lab.Base, AgentImage: lab.Cox},
		Patience: time.Minute, // a crowded machine may take longer than the usual time
		Log:      slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func (b *bench) open(t *testing.T, root string) *kube.Engine {
	t.Helper()
	e, err := kube.New(b.config(t, root))
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.roots[e] = root
	b.mu.Unlock()
	t.Cleanup(func() { b.clear(t, e) })
	return e
}

// close closes an engine in whose place another one is to be.
func (b *bench) close(t *testing.T, e engine.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.closed[e] = true
	b.mu.Unlock()
}

// rootOf is where an engine lives, and whether it was closed by the test.
func (b *bench) rootOf(e engine.Engine) (root string, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.roots[e], b.closed[e]
}

// clear ends what an engine has, and closes it.
func (b *bench) clear(t *testing.T, e *kube.Engine) {
	if _, closed := b.rootOf(e); closed { // another has taken its place
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	all, _ := e.List(ctx)
	for _, r := range all {
		_ = e.Stop(ctx, r.Ref, engine.Stop{})
	}
	left := map[engine.Ref]bool{}
	for _, r := range all {
		left[r.Ref] = true
	}
	if len(left) > 0 {
		_ = e.Watch(ctx, "", func(ev engine.Event) error {
			if ev.Report.Gone {
				delete(left, ev.Report.Ref)
			}
			if len(left) == 0 {
				return io.EOF
			}
			return nil
		})
	}
	for _, r := range all {
		_ = e.Forget(ctx, r.Ref)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestConformance: the contract of engines on real kubelets, where Coxswain chooses the nodes.
// Beside it, on a node that the contract's jobs do not take, a kubelet is silent, begins anew and
// runs short of memory.
func TestConformance(t *testing.T) {
	t.Parallel()
	b := newBench(lab.Start(t, lab.Config{Kubelets: 5}))
	b.beside(t, "Kubelet", func(t *testing.T) {
		again := testPowerLost(t, b, "n5")
		t.Run("Silent", func(t *testing.T) { testSilent(t, b, b.open(t, t.TempDir()), "n5") })
		t.Run("PowerLost", again)
		t.Run("RefusedAgain", func(t *testing.T) { testRefusedAgain(t, b, "n5") })
		t.Run("Pressed", func(t *testing.T) { testPressed(t, b, "n5") })
	})
	conform(t, b, nil)
}

// TestKubelets: what happens to pods on real kubelets, where Coxswain chooses the nodes. What is
// the whole cluster's goes first, alone.
func TestKubelets(t *testing.T) {
	t.Parallel()
	b := newBench(lab.Start(t, lab.Config{Kubelets: 4}))
	t.Run("APIServerDies", func(t *testing.T) { testServerDies(t, b, b.open(t, t.TempDir())) })
	t.Run("PartialBind", func(t *testing.T) { testPartialBind(t, b, b.open(t, t.TempDir())) })
	t.Run("Reserve", func(t *testing.T) { testReserve(t, b) })
	b.beside(t, "Devices", func(t *testing.T) {
		t.Run("Claimed", func(t *testing.T) { testClaims(t, b) })
		t.Run("Plugged", func(t *testing.T) { testDevices(t, b) }) // the kubelets go on counting those of a plugin that is gone
	})
	b.beside(t, "Volumes", func(t *testing.T) { testVolumes(t, b) })
	t.Run("Glut", func(t *testing.T) { t.Parallel(); testGlut(t, b) }) // it has no turn: it waits until a kubelet has looked, which does every 10 to 20 s
	b.beside(t, "Upload", func(t *testing.T) { testUpload(t, b) })
	b.beside(t, "Ephemeral", func(t *testing.T) { testEphemeral(t, b) })
	b.beside(t, "MPI", func(t *testing.T) { testMPI(t, b, b.open(t, t.TempDir())) })
	b.beside(t, "Checkpoints", func(t *testing.T) { testCheckpoints(t, b) })
	b.beside(t, "Serving", func(t *testing.T) { testServing(t, b, b.open(t, t.TempDir())) })
	b.beside(t, "Secrets", func(t *testing.T) { testSecrets(t, b, b.open(t, t.TempDir())) })
	b.beside(t, "Manifests", func(t *testing.T) { testManifests(t, b) })
	b.beside(t, "Shape", func(t *testing.T) { testShape(t, b) })
	testFaults(t, b)
}

// sideBySide is how many tests are under way at once on a lab.
const sideBySide = 6

// beside runs a test beside others of a lab, once its parent has returned.
func (b *bench) beside(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		asked := time.Now()
		b.turns <- struct{}{}
		defer func() { <-b.turns }()
		t.Logf("its turn came after %s", time.Since(asked).Round(time.Second))
		test(t)
	})
}

// conform is the contract of engines, or some topics of it; nil: all.
func conform(t *testing.T, b *bench, topics []string) {
	enginetest.Run(t, enginetest.Harness{
		New:    func(t *testing.T) engine.Engine { return b.open(t, t.TempDir()) },
		Script: script,
		Keeps:  true, Delegated: b.delegates, Topics: topics, Beside: sideBySide,
		Break: func(t *testing.T, _ engine.Engine, node string) { b.l.Spoil(t, node) },
		Avoid: func(t *testing.T, _ engine.Engine, node string) {
			b.l.Kubectl(t, "cordon", node)
			t.Cleanup(func() { _, _ = b.l.Try(context.Background(), "", "uncordon", node) })
		},
		Reopen: func(t *testing.T, e engine.Engine, closed func()) engine.Engine {
			b.close(t, e)
			closed()
			root, _ := b.rootOf(e)
			return b.open(t, root)
		},
		Outside: b.outside(),
		Living:  func(t *testing.T, e engine.Engine, ref engine.Ref) int { return len(processes(t, e, ref, "", "")) },
		Kill: func(t *testing.T, e engine.Engine, ref engine.Ref, node string) {
			all := processes(t, e, ref, node, "run")
			if len(all) == 0 {
				t.Fatalf("nothing watches over attempt %s on %s", ref, node)
			}
			for _, pid := range all {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
		},
	})
}

// script behaves like a program, in shell.
func script(p enginetest.Program) []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("#!/bin/sh")
	if p.Resists {
		line("trap '' TERM") // children inherit it
	}
	if p.Leaves {
		line("setsid sh -c 'while :; do sleep 600; done' &")
	}
	line("echo ready")
	switch {
	case p.Run == enginetest.Forever && p.Resists:
		line("while :; do sleep 600; done")
	case p.Run == enginetest.Forever:
		line("exec sleep 600")
	case p.Run > 0:
		line("sleep %g", p.Run.Seconds())
	}
	if p.Signal != 0 {
		line("kill -%d $$", p.Signal)
	}
	line("exit %d", p.Exit)
	return []byte(b.String())
}

// processes are those of this machine that belong to an attempt's pods, on one node or on all,
// by the host name that their environment has; with a word, those of cox-pod that have it.
func processes(t *testing.T, e engine.Engine, ref engine.Ref, node, word string) []int {
	t.Helper()
	r, err := e.Inspect(context.Background(), ref) // of a closed one too
	if err != nil || r.Native == "" {
		return nil
	}
	return living(t, r, node, word)
}

// living is processes of an attempt that is known by a report.
func living(t *testing.T, r engine.Report, node, word string) (pids []int) {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		env, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for i, n := range r.Nodes {
			if node != "" && n.Node != node || !bytes.Contains(append([]byte{0}, env...), fmt.Appendf(nil, "\x00HOSTNAME=%s-%d\x00", r.Native, i)) {
				continue
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if err != nil {
				t.Fatal(err)
			}
			args, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
			if word == "" || bytes.HasPrefix(args, []byte("/cox/bin/cox-pod\x00"+word+"\x00")) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
