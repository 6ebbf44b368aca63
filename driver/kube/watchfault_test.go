package kube_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// weather is a control plane of three apiservers on one etcd, and what stands before them.
type weather struct {
	l      *lab.Lab
	h      *hands
	first  string // its apiserver's address
	plain  string // of one that answers from etcd alone, and is never killed
	behind string // of one that knows what its gate to etcd lets through
	etcd   *gate

	patience time.Duration // of its drivers for one answer; 0: the usual
}

// noted is a driver whose log is kept.
type noted struct {
	*kube.Engine
	root string

	mu   sync.Mutex
	text bytes.Buffer
}

func (n *noted) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(b)
}

func (n *noted) log() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// open opens a driver by a kubeconfig on a state directory.
func (w *weather) open(t *testing.T, kubeconfig, root string) *noted {
	t.Helper()
	n := &noted{root: root}
	var err error
	n.Engine, err = kube.New(kube.Config{
		Root: root, Cluster: openBy(t, kubeconfig), Terms: settings.Terms{Pool: "kube", Namespace: "default", Placed: true, Image: lab.Base, AgentImage: lab.Cox},
		Log: slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), n), nil)), Patience: w.patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// TestControlFaults: what happens between a driver and its API servers: they change in the middle
// of a watch, have forgotten the version of a watch or of a list, refuse all calls for a while,
// know less than the one before, are on a connection that leads nowhere; a node is gone before its
// pod comes, or is off; and calls of a driver that is gone arrive late. No attempt is lost, none is freed
// without proof, none runs twice, and in the end nothing of it is in the cluster. The apiservers and
// etcd are real, the test is the kubelets.
func TestControlFaults(t *testing.T) {
	t.Parallel()
	w := newWeather(t)
	halfOpen, nodeGone, shutDown := w.halfOpen(t), w.nodeGone(t), w.shutDown(t)
	t.Run("FailOver", w.failOver)
	t.Run("Compacted", w.compacted)
	t.Run("ListForgotten", w.listForgotten)
	t.Run("Throttled", w.throttled)
	t.Run("Behind", w.lagging)
	t.Run("StaleList", w.staleList)
	t.Run("LateCalls", w.lateCalls)
	t.Run("LateDelete", w.lateDelete)
	t.Run("PartialBind", w.partialBind)
	t.Run("Collected", w.collected)
	t.Run("Finalized", w.finalized)
	t.Run("HalfOpen", halfOpen)
	t.Run("NodeGone", nodeGone)
	t.Run("ShutDown", shutDown)
}

func newWeather(t *testing.T) *weather {
	t.Helper()
	l := lab.Start(t, lab.Config{NoScheduler: true})
	w := &weather{l: l, first: strings.TrimPrefix(l.Server(), "https://") + ":443"}
	w.plain = l.Second(t, "plain", "", "--watch-cache=false")
	w.etcd = newGate(t, l.Near(), l.DialEtcd)
	w.behind = l.Second(t, "behind", w.etcd.at)
	w.h = newHands(t, l, w.plain, 8)
	return w
}

// run launches a job on nodes, and waits until it runs.
func (w *weather) run(t *testing.T, e engine.Engine, allocation uint64, nodes ...string) engine.Report {
	t.Helper()
	return begin(t, e, launch(allocation, "#!/bin/sh\n", nodes...))
}

// exits waits for the end of an attempt whose script ended with a code, and wants nothing left.
func (w *weather) exits(t *testing.T, e *noted, ref engine.Ref, code int) {
	t.Helper()
	if r := gone(t, e, ref); r.Cause != engine.Exited || r.Exit.Status != code {
		t.Errorf("%+v", r)
	}
	w.h.ledger(t, e.Engine, e.root)
}

// failOver: the apiserver of a watch dies, and another one answers at its address.
func (w *weather) failOver(t *testing.T) {
	g := newGate(t, "127.0.0.1", tcp(w.first))
	e := w.open(t, g.config(t, w.l, w.l.Kubeconfig()), t.TempDir())
	r := w.run(t, e, 1, "h1", "h2")
	g.to(tcp(w.plain))
	w.l.Kill(t, "apiserver")
	w.h.end(t, r, 3)
	if r := gone(t, e, r.Ref); r.Cause != engine.Exited {
		t.Errorf("%+v", r)
	}
	w.l.Restart(t, "apiserver") // by which the rest is collected
	w.exits(t, e, r.Ref, 3)
}

// compacted: while no watch gets through, the attempt ends, and etcd forgets all that was. The
// watch is refused with 410 when it goes on, in its stream; the driver looks at everything anew.
//
// Seen to fail with: a follower that goes on with the version of before.
func (w *weather) compacted(t *testing.T) {
	g := newGate(t, "127.0.0.1", tcp(w.plain))
	e := w.open(t, g.config(t, w.l, w.l.Kubeconfig()), t.TempDir())
	r := w.run(t, e, 1, "h1", "h2")
	version, err := cluster.List(t.Context(), w.h.k, cluster.Pods, cluster.Selection{}, func(*corev1.Pod) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	g.close()
	g.cut()
	w.h.end(t, r, 4)
	w.l.Compact(t)
	if _, err := cluster.Watch(t.Context(), w.h.k, cluster.Pods, cluster.Selection{}, version, func(watch.EventType, *corev1.Pod) error { return nil }); !cluster.Expired(err) {
		t.Errorf("a watch from before it was compacted: %v", err)
	}
	g.open()
	w.exits(t, e, r.Ref, 4)
	if !strings.Contains(e.log(), "old") {
		t.Errorf("no watch of the driver was refused:\n%s", e.log())
	}
}

// listForgotten: etcd forgets, between two parts of a list, the version that the list is of. A
// driver that begins then, and its look at the nodes, take it again.
//
// Seen to fail with: a look that is taken once.
func (w *weather) listForgotten(t *testing.T) {
	root := t.TempDir()
	first := w.open(t, w.l.Kubeconfig(), root)
	r := w.run(t, first, 1, "h1", "h2", "h3")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	tp := newTap(t, w.l, w.plain)
	var mu sync.Mutex
	forgot, refused := map[string]bool{}, map[string]bool{}
	tp.set(func(rw http.ResponseWriter, q *http.Request, pass http.HandlerFunc) {
		v := q.URL.Query()
		if v.Get("limit") != "" {
			v.Set("limit", "1") // so that there are parts
			q.URL.RawQuery = v.Encode()
		}
		mu.Lock()
		if at := q.URL.Path; v.Get("continue") != "" && !forgot[at] {
			forgot[at] = true
			w.l.Apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: change}\ndata: {at: \""+at+"\"}\n") // there is something to forget
			w.l.Compact(t)
		}
		mu.Unlock()
		pass(rw, q)
	}, func(r *http.Response) error {
		mu.Lock()
		defer mu.Unlock()
		if r.StatusCode == http.StatusGone {
			refused[r.Request.URL.Path] = true
		}
		return nil
	})
	e := w.open(t, tp.file, root)
	nodes, err := e.Nodes(t.Context())
	names := make([]string, 0, len(nodes))
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	if want := []string{"dark", "h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("nodes %q, %v, want %q", names, err, want)
	}
	w.h.end(t, r, 5)
	w.exits(t, e, r.Ref, 5)
	mu.Lock()
	defer mu.Unlock()
	for _, at := range []string{"/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces/default/pods"} {
		if !refused[at] {
			t.Errorf("no list of %s was forgotten in its middle: %v", at, refused)
		}
	}
}

// lagging: the apiserver that answers next knows nothing of what the one before has shown: pods
// that run are not there for it. It is waited for; nothing is free, nothing is uncertain.
func (w *weather) lagging(t *testing.T) {
	g := newGate(t, "127.0.0.1", tcp(w.first))
	e := w.open(t, g.config(t, w.l, w.l.Kubeconfig()), t.TempDir())
	if _, err := e.Nodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.etcd.close()
	r := w.run(t, e, 1, "h1", "h2")
	if out, err := w.l.Try(t.Context(), "", "--server=https://"+w.behind, "get", "--raw", "/api/v1/namespaces/default/pods?resourceVersion=0"); err != nil || strings.Contains(out, r.Native) {
		t.Errorf("the apiserver that should be behind is not: %v, %s", err, out)
	}
	before := g.passed()
	g.to(tcp(w.behind))
	g.cut()
	until(t, "the driver comes again", func() bool { return g.passed() > before })
	w.h.end(t, r, 6)
	if now, err := e.Inspect(t.Context(), r.Ref); err != nil || now.Phase != engine.Running || now.Uncertain {
		t.Errorf("%+v, %v", now, err)
	}
	w.etcd.open()
	w.exits(t, e, r.Ref, 6)
}

// staleList: a list is answered as it was before the attempt began, as by a cache that is far
// behind. What was seen to run and is not in it is uncertain, and nothing is free; what comes
// after it makes it good.
func (w *weather) staleList(t *testing.T) {
	tp := newTap(t, w.l, w.plain)
	var mu sync.Mutex
	var old []byte
	var form string // of old
	expire, stale := false, 0
	ours := func(q *http.Request) bool {
		return strings.HasSuffix(q.URL.Path, "/namespaces/default/pods") && q.Method == http.MethodGet && strings.Contains(q.URL.Query().Get("labelSelector"), "server")
	}
	cut := make(chan struct{})
	tp.set(func(rw http.ResponseWriter, q *http.Request, pass http.HandlerFunc) {
		if !ours(q) {
			pass(rw, q)
			return
		}
		watches := q.URL.Query().Get("watch") != ""
		mu.Lock()
		switch {
		case watches && expire:
			expire = false
			mu.Unlock()
			http.Error(rw, `{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired","message":"too old"}`, http.StatusGone)
			return
		case !watches && stale > 0:
			stale--
			mu.Unlock()
			rw.Header().Set("Content-Type", form)
			_, _ = rw.Write(old)
			return
		}
		until := cut
		mu.Unlock()
		if watches {
			var end func()
			q, end = cutBy(q, until)
			defer end()
		}
		pass(rw, q)
	}, func(r *http.Response) error {
		if mu.Lock(); old == nil && ours(r.Request) && r.Request.URL.Query().Get("watch") == "" {
			old, _ = io.ReadAll(r.Body)
			form = r.Header.Get("Content-Type")
			r.Body = io.NopCloser(bytes.NewReader(old))
		}
		mu.Unlock()
		return nil
	})
	e := w.open(t, tp.file, t.TempDir())
	r := w.run(t, e, 1, "h1", "h2")
	mu.Lock()
	if strings.Contains(string(old), r.Native) || len(old) == 0 {
		t.Errorf("the list of before has it: %s", old)
	}
	expire, stale = true, 1
	close(cut)
	cut = make(chan struct{})
	mu.Unlock()
	await(t, e, r.Ref, "uncertain", func(r engine.Report) bool {
		if r.Gone {
			t.Fatalf("gone without proof: %+v", r)
		}
		return r.Uncertain
	})
	await(t, e, r.Ref, "certain", func(r engine.Report) bool { return !r.Uncertain && r.Phase == engine.Running })
	if all := w.h.pods(t, r.Native); len(all) != 2 {
		t.Errorf("pods %q", all)
	}
	w.h.end(t, r, 7)
	w.exits(t, e, r.Ref, 7)
}

// halfOpen: all connections lead nowhere, without an end. The driver finds out by itself, while
// other tests go on.
func (w *weather) halfOpen(t *testing.T) func(*testing.T) {
	g := newGate(t, "127.0.0.1", tcp(w.plain))
	e := w.open(t, g.config(t, w.l, w.l.Kubeconfig()), t.TempDir())
	r := w.run(t, e, 1, "h3", "h4")
	g.hush()
	w.h.end(t, r, 8)
	return func(t *testing.T) { w.exits(t, e, r.Ref, 8) }
}

// cutBy is a request that ends when a channel is closed too.
func cutBy(q *http.Request, cut <-chan struct{}) (*http.Request, func()) {
	ctx, cancel := context.WithCancel(q.Context())
	go func() {
		select {
		case <-cut:
			cancel()
		case <-ctx.Done():
		}
	}()
	return q.WithContext(ctx), cancel
}
