package kube

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/inventory"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Nodes are kept for a pool by three things. The taint keeps off what asks a scheduler for a
// node and does not bear it. The admission policy, which an administrator of the cluster has
// applied (Policy), refuses what goes round the scheduler or bears the taint; it does so for
// the nodes that are keys of a ConfigMap in the pool's namespace. Taints and ConfigMap are
// written here: whatever node comes to the pool is kept from the next look on, and one that
// leaves it is given back. What ran on a node before goes on, and is counted.

// Marks in the ConfigMap, each with the UID of the node's object behind it.
const (
	markMade  = "tainted-by-coxswain "
	markFound = "tainted-by-others "
)

// Nodes lists the nodes of the pool. Those that are kept for it and are not marked yet are
// marked soon after.
func (e *Engine) Nodes(ctx context.Context) ([]fleet.Node, error) {
	out, err := e.inventory.Nodes(ctx)
	e.recheckLost() // of a look that failed there may be nodes
	if err == nil {
		e.See(out)
		e.reserver.wake()
	}
	return out, err
}

// Inventory is engine.Inventorier's: nil before the nodes were listed.
func (e *Engine) Inventory() *fleet.Inventory { return e.inventory.Report() }

// Machine is a node of the pool as last listed, with what pods hold of it. false: the pool has none of
// that name.
func (e *Engine) Machine(ctx context.Context, name string) (inventory.Machine, bool, error) {
	return e.inventory.Machine(ctx, name)
}

// CheckNode is engine.NodeChecker's: the conditions of a node, as last listed.
func (e *Engine) CheckNode(ctx context.Context, node string) ([]fleet.CheckResult, error) {
	m, ok, err := e.inventory.Machine(ctx, node)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fault.New(fault.NotFound, "the pool has no node %s", node)
	}
	return m.Health, nil
}

// nodeReserver keeps the pool's nodes for it: it writes their taints, and the list of them that the
// admission policy reads.
type nodeReserver struct {
	calls     *clusterCalls
	terms     *settings.Terms
	inventory *inventory.Inventory
	log       *slog.Logger
	due       chan struct{} // the nodes were listed: those that are kept may not all be marked

	mu   sync.Mutex // one pass over the nodes at a time
	left bool       // none are kept any more
}

// wake has the nodes marked soon.
func (r *nodeReserver) wake() {
	select {
	case r.due <- struct{}{}:
	default:
	}
}

// runLoop marks nodes after each look at them, until the engine is closed.
func (r *nodeReserver) runLoop() {
	said := ""
	for {
		select {
		case <-r.due:
		case <-r.calls.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(r.calls.ctx, 10*r.calls.patience)
		err := r.reserveNodes(ctx)
		cancel()
		switch {
		case r.calls.ctx.Err() != nil:
			return
		case err == nil:
			said = ""
		case err.Error() != said: // it comes again with each look
			said = err.Error()
			r.log.Warn("kubernetes: nodes are not kept for the pool", "error", errorWithAdvice(err))
		}
	}
}

// reserveNodes makes list and taints what they should be by the last look. The list is first to
// grow and last to shrink: no node has our taint that it does not know of.
func (r *nodeReserver) reserveNodes(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left {
		return nil
	}
	t := r.terms
	nodes := r.inventory.ReservedNodes()
	list, err := r.readReserved(ctx)
	if err != nil {
		return err
	}
	want, back := map[string]string{}, []inventory.ReservedNode{}
	var mark []inventory.ReservedNode
	for _, n := range nodes {
		was, known := strings.CutSuffix(list[n.Name], string(n.UID))
		switch {
		case n.InPool && !n.HasPoolTaint(t):
			mark = append(mark, n)
			want[n.Name] = markMade + string(n.UID)
		case n.InPool && known && was == markMade:
			want[n.Name] = markMade + string(n.UID)
		case n.InPool:
			want[n.Name] = markFound + string(n.UID)
		case known && was == markMade && n.HasPoolTaint(t):
			back = append(back, n)
		}
	}
	more := maps.Clone(want)
	for n, was := range list {
		if _, ok := more[n]; !ok {
			more[n] = was
		}
	}
	if err := r.writeReserved(ctx, list, more); err != nil {
		return err
	}
	errs := r.calls.forEach(len(mark), func(i int) error { return r.setPoolTaint(ctx, mark[i], true) })
	if err := r.calls.forEach(len(back), func(i int) error { return r.setPoolTaint(ctx, back[i], false) }); err != nil {
		return errors.Join(errs, err)
	}
	return errors.Join(errs, r.writeReserved(ctx, more, want))
}

// readReserved reads the list; nil: there is none yet. One of another server's is fault.Conflict.
func (r *nodeReserver) readReserved(ctx context.Context) (map[string]string, error) {
	var c corev1.ConfigMap
	err := r.calls.k.Get(ctx, cluster.ConfigMaps, r.terms.Namespace, r.terms.ReserveName(), &c)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case c.Labels[render.LabelServer] != r.calls.server:
		return nil, fault.New(fault.Conflict, "configmap %s/%s is another server's, or nobody's", c.Namespace, c.Name).
			Advise("give the pool another name; or, if that server is no more, have this one take its place: kubectl label --overwrite configmap %s --namespace %s %s=%s", c.Name, c.Namespace, render.LabelServer, r.calls.server)
	case c.Data == nil:
		return map[string]string{}, nil
	}
	return c.Data, nil
}

// writeReserved has the list say what it is to say.
func (r *nodeReserver) writeReserved(ctx context.Context, is, want map[string]string) error {
	t := r.terms
	if is == nil {
		c := corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.ReserveName(), Labels: map[string]string{render.LabelServer: r.calls.server}},
			Data:       want,
		}
		return r.calls.k.Create(ctx, cluster.ConfigMaps, t.Namespace, &c, false, nil)
	}
	change := map[string]any{}
	for n, mark := range want {
		if is[n] != mark {
			change[n] = mark
		}
	}
	for n := range is {
		if _, ok := want[n]; !ok {
			change[n] = nil
		}
	}
	if len(change) == 0 {
		return nil
	}
	return r.calls.k.Patch(ctx, cluster.ConfigMaps, t.Namespace, t.ReserveName(), "", cluster.Merge, map[string]any{"data": change}, nil)
}

// setPoolTaint puts the pool's taint on a node, or takes it away. A node that has changed since it was
// looked at is left for the next look.
func (r *nodeReserver) setPoolTaint(ctx context.Context, n inventory.ReservedNode, on bool) error {
	t := r.terms
	taints := slices.DeleteFunc(slices.Clone(n.Taints), func(x corev1.Taint) bool { return t.IsOwnTaint(&x) })
	if on {
		taints = append(taints, corev1.Taint{Key: settings.TaintPool, Value: t.Pool, Effect: corev1.TaintEffectNoSchedule})
	}
	ctx, cancel := context.WithTimeout(ctx, r.calls.patience)
	defer cancel()
	patch := map[string]any{"metadata": map[string]any{"uid": n.UID, "resourceVersion": n.Version}, "spec": map[string]any{"taints": taints}}
	err := r.calls.k.Patch(ctx, cluster.Nodes, "", n.Name, "", cluster.Merge, patch, nil)
	if k := fault.KindOf(err); err != nil && (k == fault.NotFound || k == fault.Conflict && on) {
		return nil
	}
	return err
}

// releaseNodes gives the nodes back that have the taint by us; with the list the policy has nothing to
// refuse any more. Taints that were there before stay.
func (r *nodeReserver) releaseNodes(ctx context.Context) error {
	if !r.terms.Reserve {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
	t := r.terms
	list, err := r.readReserved(ctx)
	if err != nil || list == nil {
		return err
	}
	for try := 0; ; try++ {
		if _, err := r.inventory.Refresh(ctx); err != nil {
			return err
		}
		back := slices.DeleteFunc(slices.Clone(r.inventory.ReservedNodes()), func(n inventory.ReservedNode) bool {
			return !n.HasPoolTaint(t) || list[n.Name] != markMade+string(n.UID)
		})
		err := r.calls.forEach(len(back), func(i int) error { return r.setPoolTaint(ctx, back[i], false) })
		if err == nil {
			break
		}
		if fault.KindOf(err) != fault.Conflict || try == 5 { // it has changed meanwhile
			return err
		}
	}
	if err := r.calls.k.Delete(ctx, cluster.ConfigMaps, t.Namespace, t.ReserveName(), cluster.Deletion{}); fault.KindOf(err) != fault.NotFound {
		return err
	}
	return nil
}
