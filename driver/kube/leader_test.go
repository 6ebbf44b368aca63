package kube_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// TestLeaderOfEtcd: the apiserver's etcd has three members. While jobs are launched, begin and end,
// the leader moves, again and again, is killed and begun anew; and for a while there is none, as two
// are killed: then calls of the apiserver fail in etcd's words, or have no answer, which is no refusal
// of what is launched at that time. Every attempt ends once, by its exit code, each of its pods was made once, and
// nothing is left.
//
// Seen to fail with: an answer of 500 taken for a refusal (an attempt that did not begin, for etcd's
// words).
func TestLeaderOfEtcd(t *testing.T) {
	t.Parallel()
	l := lab.Start(t, lab.Config{NoScheduler: true, Etcds: 3})
	began := time.Now()
	w := &leaders{weather: weather{l: l, patience: 10 * time.Second, h: newHands(t, l, strings.TrimPrefix(l.Server(), "https://")+":443", 6)}}
	w.made.of = map[string]map[types.UID]bool{}
	w.e = w.open(t, l.Kubeconfig(), t.TempDir())
	go cluster.Follow(t.Context(), w.h.k, cluster.Pods, cluster.Selection{Namespace: "default"}, cluster.Follower[corev1.Pod]{Each: w.made.note})

	for range 2 {
		w.round(t, func() { l.MoveLeader(t) })
	}
	t.Logf("moved after %s", time.Since(began))
	killed := ""
	w.round(t, func() {
		if killed != "" {
			l.Restart(t, killed)
		}
		killed = l.Leader(t)
		l.Kill(t, killed)
		if now := l.Leader(t); now == killed {
			t.Errorf("%s is killed and leads", now)
		}
	})
	t.Logf("killed after %s", time.Since(began))
	l.Kill(t, l.Leader(t)) // the second of three
	late := w.launch(t)
	for _, ref := range late {
		r := await(t, w.e, ref, "told that a call failed", func(r engine.Report) bool {
			if r.Phase != engine.Accepted {
				t.Fatalf("%+v", r)
			}
			return r.Message != ""
		})
		t.Logf("attempt %s: %s", ref, r.Message)
	}
	for _, name := range []string{"etcd", "etcd.2", "etcd.3"} {
		l.Restart(t, name)
	}
	w.end(t, w.running(t, late))
	w.gone(t, late)
	t.Logf("none led until %s", time.Since(began))

	for _, ref := range w.kept {
		if r, err := w.e.Inspect(t.Context(), ref); err != nil || !r.Gone || r.Uncertain || r.Cause != engine.Exited || r.Exit.Status != exitOf(ref) {
			t.Errorf("%+v, %v", r, err)
		}
	}
	w.h.ledger(t, w.e.Engine, w.e.root)
	w.made.once(t, 2*w.count)
	t.Logf("over after %s", time.Since(began))
}

// leaders is a cluster whose etcd has several members, and a driver.
type leaders struct {
	weather
	e     *noted
	count int          // of jobs that were launched
	kept  []engine.Ref // that have ended and are not forgotten
	made  podsMade
}

// exitOf is with which code an attempt's script ends.
func exitOf(ref engine.Ref) int { return int(ref.Allocation) } //nolint:gosec // a few

// round launches jobs, has them begin and end, and does something in the middle of each. One of
// them is forgotten at once.
func (w *leaders) round(t *testing.T, disturb func()) {
	t.Helper()
	refs := w.launch(t)
	disturb()
	w.end(t, w.running(t, refs))
	disturb()
	w.gone(t, refs)
	if err := w.e.Forget(t.Context(), refs[0]); err != nil {
		t.Error(err)
	}
	w.kept = append(w.kept[:len(w.kept)-len(refs)], refs[1:]...)
}

// launch hands three jobs over, on two nodes each.
func (w *leaders) launch(t *testing.T) (refs []engine.Ref) {
	t.Helper()
	for i := range 3 {
		w.count++
		l := launch(uint64(w.count), "#!/bin/sh\n", fmt.Sprintf("h%d", 2*i+1), fmt.Sprintf("h%d", 2*i+2)) //nolint:gosec // a few
		if err := w.h.insist(t, func(bool) error { return w.e.Launch(t.Context(), l) }); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, l.Ref)
	}
	return refs
}

// running waits until jobs run.
func (w *leaders) running(t *testing.T, refs []engine.Ref) (all []engine.Report) {
	t.Helper()
	for _, ref := range refs {
		all = append(all, await(t, w.e, ref, "running", func(r engine.Report) bool {
			if r.Phase > engine.Running {
				t.Fatalf("%+v", r)
			}
			return r.Phase == engine.Running
		}))
	}
	return all
}

// end has jobs end by themselves.
func (w *leaders) end(t *testing.T, all []engine.Report) {
	t.Helper()
	for _, r := range all {
		w.h.end(t, r, exitOf(r.Ref))
	}
}

// gone waits for the ends of jobs.
func (w *leaders) gone(t *testing.T, refs []engine.Ref) {
	t.Helper()
	for _, ref := range refs {
		if r := gone(t, w.e, ref); r.Cause != engine.Exited || r.Exit.Status != exitOf(ref) {
			t.Errorf("%+v", r)
		}
		w.kept = append(w.kept, ref)
	}
}

// podsMade are the pods that were ever seen, by their names.
type podsMade struct {
	mu sync.Mutex
	of map[string]map[types.UID]bool
}

func (m *podsMade) note(p *corev1.Pod, _ bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[p.Name] == nil {
		m.of[p.Name] = map[types.UID]bool{}
	}
	m.of[p.Name][p.UID] = true
}

// once wants so many names, each of one pod alone.
func (m *podsMade) once(t *testing.T, names int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.of) != names {
		t.Errorf("pods of %d names, want %d", len(m.of), names)
	}
	for name, of := range m.of {
		if len(of) != 1 {
			t.Errorf("pod %s was made %d times", name, len(of))
		}
	}
}
