package kube

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/dra"
	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/inventory"
	"github.com/coxswain-sched/coxswain/driver/kube/manifestpod"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Delegates reports whether the cluster's own scheduler chooses the nodes (engine.Delegator).
func (e *Engine) Delegates() bool { return !e.cfg.Terms.Placed }

// OwnAddresses implements engine.Addresser: each pod has an address of its own.
func (e *Engine) OwnAddresses() bool { return true }

// planDelegation fills in what pods a job has whose nodes the cluster's scheduler chooses, and by
// which gang they begin together.
func (e *Engine) planDelegation(ctx context.Context, o *order) error {
	near, spec, err := gang.Nearness(&e.cfg.Terms, o.Job.Spec, func() ([]string, error) { return e.inventory.TopologyLabels(ctx) })
	if err != nil {
		return err
	}
	o.Near = near
	if o.isManifest() {
		o.Nodes, o.Claims, err = manifestpod.Spread(spec)
	} else {
		o.Nodes, o.Claims, err = render.Spread(spec, func() (string, error) { return e.inventory.WholeGPU(ctx) }, e.claimsBy(ctx))
	}
	if err != nil {
		return err
	}
	if err = e.addGPUTolerations(ctx, o.Nodes); err != nil {
		return err
	}
	strict, err := e.inventory.HasStrictGroups(ctx)
	if err != nil {
		return err
	}
	for i := range o.Nodes {
		o.Nodes[i].Strict = strict
	}
	g, all, err := e.servedGang(ctx)
	switch {
	case err != nil:
		return err
	case len(o.Nodes) == 1 && (g == nil || g.Kind == render.Native):
		return nil // one pod is a gang by itself; but two schedulers are not to have the same nodes, nor a pod to pass by the queue
	case g == nil:
		return e.noGang(o, all)
	}
	o.Gang = g
	return g.CheckClaims(o.Nodes)
}

// noGang refuses a job that has several pods. All are what the cluster has, of which the pool uses
// none.
func (e *Engine) noGang(o *order, all []gang.Gang) error {
	t := &e.cfg.Terms
	one := "ask for one node"
	if o.isManifest() {
		one = "have one pod"
	} else if o.Job.Spec.PodPerTask() {
		one = "leave pods: task out and ask for one node"
	}
	has := "nothing that does that"
	mend := one + "; or a pool of this cluster with placed=true, where Coxswain chooses the nodes; or have the cluster's administrator install one of " + strings.Join(gang.Kinds(), ", ")
	if t.Gang != "" {
		var names []string
		for _, g := range all {
			names = append(names, string(g.Kind))
		}
		has = cmp.Or(strings.Join(names, ", "), "nothing else") + ", and not " + string(t.Gang) + ", which the pool is set to use"
	}
	for _, g := range all {
		if missing := gang.MissingSettings(t, g.Kind); missing != "" && (t.Gang == "" || t.Gang == g.Kind) {
			has = string(g.Kind) + ", which the pool's settings do not let it use"
			mend = "set " + missing + " for the pool; or " + one + "; or a pool of this cluster with placed=true, where Coxswain chooses the nodes"
			break
		}
	}
	return engine.About(fault.New(fault.Unsupported, "the job has %d pods that have to begin together, and the cluster has %s", len(o.Nodes), has).Advise("%s", mend), "nodes")
}

// gangKind is the kind of gang by which an attempt's pods begin; empty: none.
func (o *order) gangKind() render.GangKind {
	if o.Gang == nil {
		return ""
	}
	return o.Gang.Kind
}

// createGang creates the gang of an attempt's pods.
func (e *Engine) createGang(a *attempt, way *cluster.Cluster, r *render.Attempt, root types.UID) error {
	if a.order.Gang == nil {
		return nil
	}
	at := a.order.Gang.Resource
	g := r.Group(root, at.Version)
	if g == nil {
		return nil
	}
	g.APIVersion = at.Group + "/" + at.Version
	return createObject(e.calls, way, at, g, func(there *render.Group) bool { return isOwner(root, there) })
}

// removeGates lets the cluster's scheduler have the pods: all are there.
func (e *Engine) removeGates(a *attempt) error {
	e.mu.Lock()
	m := a.made
	e.mu.Unlock()
	err := e.calls.forEach(len(m.Pods), func(i int) error {
		ctx, cancel := e.calls.callContext()
		defer cancel()
		return e.k.Patch(ctx, cluster.Pods, a.namespace, podName(e, a.ref, i), "", cluster.Keyed, withoutGate(m.Pods[i]), nil)
	})
	if err == nil {
		e.mu.Lock()
		a.bound = true
		e.mu.Unlock()
	}
	return err
}

// withoutGate takes our gate from a pod, and leaves those of others.
func withoutGate(pod types.UID) any {
	return map[string]any{
		"metadata": map[string]any{"uid": pod},
		"spec":     map[string]any{"schedulingGates": []any{map[string]any{"name": render.Gate, "$patch": "delete"}}},
	}
}

func podName(e *Engine, ref engine.Ref, i int) string { return render.PodName(e.log.server, ref, i) }

// claimsBy says which devices a request is for, where the cluster's scheduler chooses them.
// nil: the settings name no class, and devices are counted.
func (e *Engine) claimsBy(ctx context.Context) func(resource.DeviceRequest) (render.Piece, error) {
	if len(e.cfg.Terms.Classes) == 0 {
		return nil
	}
	return func(r resource.DeviceRequest) (render.Piece, error) {
		all, err := e.inventory.LastNodes(ctx)
		if err != nil {
			return render.Piece{}, err
		}
		return dra.Wanted(inventory.OfferedDevices(all), e.cfg.Terms.Classes, r)
	}
}

// addGPUTolerations has pods whose devices are claimed bear the taints with which nodes of the pool keep
// others off their GPUs: on which node they will be is not known.
func (e *Engine) addGPUTolerations(ctx context.Context, nodes []render.Node) error {
	if !gang.WithClaims(nodes) {
		return nil
	}
	all, err := e.inventory.LastNodes(ctx)
	if err != nil {
		return err
	}
	var keys []string
	for i := range all {
		for k := range all[i].Taints {
			if key := all[i].Taints[k].Key; e.cfg.Terms.IsGPU(key) && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	for i := range nodes {
		if len(nodes[i].Pieces) > 0 {
			nodes[i].Bears = keys
		}
	}
	return nil
}

// watchGangs follows the objects of gangs of a kind in a namespace, once, until the engine is closed.
// What they say of why they wait, e.said has.
func (e *Engine) watchGangs(g *gang.Gang, namespace string) {
	if g == nil || g.Kind == render.Native || g.Kind == render.Coscheduling { // their pods say it
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.heard[namespace] || e.ctx.Err() != nil {
		return
	}
	e.heard[namespace] = true
	s := cluster.Selection{Namespace: namespace, Labels: render.LabelServer + "=" + e.log.server}
	if g.Kind == render.Kueue {
		s.Labels = "" // it does not give them labels of ours
	}
	kind := g.Kind
	seen := map[string]bool{}
	e.wg.Go(func() {
		cluster.Follow(e.ctx, e.k, g.Resource, s, cluster.Follower[gang.Object]{
			Begin: func() { clear(seen) },
			Each: func(o *gang.Object, deleted bool) {
				seen[o.Name] = true
				text := ""
				if !deleted {
					text = gang.WaitReason(kind, e.cfg.Terms.Queue, o)
				}
				e.noteGangReason(namespace, o.Name, text)
			},
			Listed: func() { e.clearMissingGangs(namespace, seen) },
			Failed: func(err error) { e.cfg.Log.Warn("kubernetes", "gangs", string(kind), "error", err) },
		})
	})
}

// clearMissingGangs takes the end of a list of a namespace: objects that are not in it are gone, and say nothing
// any more.
func (e *Engine) clearMissingGangs(namespace string, seen map[string]bool) {
	e.mu.Lock()
	var gone []string
	for key := range e.said {
		if name, here := strings.CutPrefix(key, namespace+"/"); here && !seen[name] {
			gone = append(gone, name)
		}
	}
	e.mu.Unlock()
	for _, name := range gone {
		e.noteGangReason(namespace, name, "")
	}
}

// noteGangReason takes what a gang's object says.
func (e *Engine) noteGangReason(namespace, name, text string) {
	if !strings.HasPrefix(name, "cox-"+e.log.server+"-") {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	key := namespace + "/" + name
	if e.said[key] == text {
		return
	}
	if e.said[key] = text; text == "" {
		delete(e.said, key)
	}
	for ref, a := range e.attempts {
		if a.namespace == namespace && render.Name(e.log.server, ref) == name {
			a.wakeUp()
		}
	}
}
