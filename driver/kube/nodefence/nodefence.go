// Package nodefence closes nodes of a Kubernetes cluster to all new work, and looks what is on them
// (engine.NodeFencer).
//
// The model. A fence is two taints of one key, with the epoch as value: NoSchedule keeps schedulers off, and
// NoExecute makes the kubelet refuse pods that somebody gives the node past them. An annotation says what it
// is for. The node is not cordoned: kubectl cordon says nothing to a node that is cordoned already, so an
// administrator's cordon could not be told from ours. So a cordon is always somebody else's, and stays.
//
// NoExecute ends pods that run. They are given a toleration first, so that they go on; what is started anew in
// their place has none. The controller that ends pods watches pods and nodes each by itself, and may see the taint
// before a toleration that is older: so the taint comes a while after the last toleration (settling). DaemonSets that do not tolerate the fence leave the node as long as it stands. A pod that
// runs and cannot be given the toleration keeps the fence from standing: Fence is fault.Permission, and the
// NoSchedule taint stays meanwhile.
//
// Each change of a node is made only if the node has not changed since it was looked at.
//
// Guarantees. Empty counts pods that the API server lists after the fence was seen, ended ones of which a container
// runs too, and claims of devices of the node. Pods of DaemonSets and static pods are the node's own and do not
// count. The node is not known to be empty before its kubelet has renewed its lease since the fence was first
// seen here, or seen again after a time without it, nor while its lease has not been renewed for longer than it lasts
// by this machine's clock, nor while the node is not ready. Processes are not looked at.
package nodefence

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/dra"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Leases are those by which kubelets say that they live, in the namespace LeaseNamespace, by the node's name.
var Leases = cluster.Resource{Group: "coordination.k8s.io", Version: "v1", Name: "leases"}

// LeaseNamespace is that of the kubelets' leases.
const LeaseNamespace = "kube-node-lease"

// Fencer is an engine.NodeFencer. It is safe for concurrent use.
type Fencer struct {
	k        *cluster.Cluster
	server   string // value of render.LabelServer on the pods that are ours
	book     *kit.FenceBook
	patience time.Duration
	settle   func(context.Context) error // waits until the cluster's controllers have seen what was changed

	mu     sync.Mutex
	closed map[string]engine.NodeFence // nodes on which nothing is to be launched, as far as it is known here
	beats  map[string]beat             // by node
}

// beat is what is known of a kubelet's lease.
type beat struct {
	epoch   uint64    // of the fence that was seen to stand; 0: none was at the last look
	first   time.Time // when it had been renewed when the fence was first seen, by the kubelet's clock
	last    time.Time // … now
	changed time.Time // when that was seen to change, by this machine's clock
}

// New makes one for a cluster, with a file of its own. server is the value of render.LabelServer on the pods that
// are ours, patience how long the cluster may take.
func New(k *cluster.Cluster, file, server string, patience time.Duration) (*Fencer, error) {
	book, err := kit.OpenFenceBook(file)
	if err != nil {
		return nil, err
	}
	return &Fencer{k: k, server: server, book: book, patience: patience, settle: settle, closed: map[string]engine.NodeFence{}, beats: map[string]beat{}}, nil
}

// Fence closes a node; see engine.NodeFencer.
func (f *Fencer) Fence(ctx context.Context, node string, to engine.NodeFence) error {
	unseen := false // pods have got tolerations since the last time to see them
	return f.changeNode(ctx, node, to, func(ctx context.Context, n *corev1.Node, m Mark) (bool, error) {
		if m.Stands && m.NodeFence == to {
			return true, nil
		}
		if m.Epoch != to.Epoch || m.Reason != to.Reason || !slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return IsTaint(&x) && x.Effect == effects[0] }) {
			of := effects[:1]
			if m.Stands {
				of = effects // of an earlier epoch: who runs there has the toleration
			}
			return false, f.setTaints(ctx, n, to, of)
		}
		spared, err := f.sparePods(ctx, node)
		unseen = unseen || spared // some may have, though one that changed meanwhile is an error
		switch {
		case err != nil:
			return false, err
		case unseen: // and look again: others may have come meanwhile
			unseen = false
			return false, f.settle(ctx)
		}
		return false, f.setTaints(ctx, n, to, effects)
	})
}

// settling is how long the controllers of a cluster have to see a pod's toleration before the taint is set that it
// tolerates. They are told of a change within milliseconds, if nothing keeps them.
const settling = 3 * time.Second

// settle waits so long.
func settle(ctx context.Context) error {
	select {
	case <-time.After(settling):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unfence removes our fence; see engine.NodeFencer.
func (f *Fencer) Unfence(ctx context.Context, node string, to engine.NodeFence) error {
	return f.changeNode(ctx, node, to, func(ctx context.Context, n *corev1.Node, m Mark) (bool, error) {
		_, said := n.Annotations[Key]
		if !said && !slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return IsTaint(&x) }) {
			return true, nil
		}
		return false, f.setTaints(ctx, n, to, nil)
	})
}

// stepsAtMost is how often a node is looked at and changed in one call: others may change it at the same time.
const stepsAtMost = 20

// changeNode makes one step after the other on a node, as it is then, until step says that it is done.
func (f *Fencer) changeNode(ctx context.Context, node string, to engine.NodeFence, step func(context.Context, *corev1.Node, Mark) (done bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	var n *corev1.Node
	leave, err := f.book.Enter(ctx, node, to, func() (epoch uint64, err error) {
		if n, err = f.nodeNamed(ctx, node); err != nil {
			return 0, err
		}
		return Read(n).Epoch, nil
	})
	if err != nil {
		return err
	}
	defer leave()
	for range stepsAtMost {
		f.noteNode(n)
		done, err := step(ctx, n, Read(n))
		switch k := fault.KindOf(err); {
		case done:
			_ = f.listenTo(ctx, n, Read(n), &engine.NodeContents{}) // from now on its kubelet has to be heard
			return nil
		case err == nil || k == fault.Conflict:
		case k == fault.Permission:
			return fault.New(k, "fence node %s: %w", node, err).
				Advise("give the pool's account what cox pool add NAME --engine kube --set handover=true --print-rbac prints")
		default:
			return fault.New(fault.Unavailable, "fence node %s: %w", node, err)
		}
		if n, err = f.nodeNamed(ctx, node); err != nil {
			return err
		}
	}
	return fault.New(fault.Unavailable, "node %s changes too often: its fence could not be changed", node)
}

// setTaints puts taints of these effects in the place of those of earlier fences; none: the annotation goes too.
func (f *Fencer) setTaints(ctx context.Context, n *corev1.Node, to engine.NodeFence, of []corev1.TaintEffect) error {
	var note any
	if len(of) > 0 {
		text, err := json.Marshal(to)
		if err != nil {
			return err
		}
		note = string(text)
		f.mu.Lock()
		f.closed[n.Name] = to // until it is seen how it is
		f.mu.Unlock()
	}
	return f.k.Patch(ctx, cluster.Nodes, "", n.Name, "", cluster.Merge, map[string]any{
		"metadata": map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion, "annotations": map[string]any{Key: note}},
		"spec":     map[string]any{"taints": withTaints(n.Spec.Taints, to, of...)},
	}, nil)
}

// sparePods lets the pods go on that run on a node and would be ended by the fence. spared: there were such pods.
func (f *Fencer) sparePods(ctx context.Context, node string) (spared bool, err error) {
	err = f.eachPod(ctx, node, func(p *corev1.Pod) error {
		if !runsContainer(p) || ownedByNode(p) || p.DeletionTimestamp != nil || toleratesFence(p) {
			return nil
		}
		all := append(slices.Clone(p.Spec.Tolerations), corev1.Toleration{Key: Key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
		err := f.k.Patch(ctx, cluster.Pods, p.Namespace, p.Name, "", cluster.Merge, map[string]any{
			"metadata": map[string]any{"uid": p.UID, "resourceVersion": p.ResourceVersion}, "spec": map[string]any{"tolerations": all},
		}, nil)
		switch k := fault.KindOf(err); {
		case err == nil:
			spared = true
			return nil
		case k == fault.NotFound:
			return nil
		case k == fault.Permission:
			return fault.New(k, "pod %s/%s runs there and would be ended: %w", p.Namespace, p.Name, err)
		}
		return err
	})
	return spared, err
}

// eachPod calls do for each pod that has a node.
func (f *Fencer) eachPod(ctx context.Context, node string, do func(*corev1.Pod) error) error {
	var all []*corev1.Pod
	err := cluster.Unbroken(func() error {
		all = nil
		_, err := cluster.List(ctx, f.k, cluster.Pods, cluster.Selection{Fields: "spec.nodeName=" + node}, func(p *corev1.Pod) error {
			all = append(all, p)
			return nil
		})
		return err
	})
	for _, p := range all {
		if err == nil {
			err = do(p)
		}
	}
	return err
}

// runsContainer reports whether a container of a pod may run.
func runsContainer(p *corev1.Pod) bool {
	for _, all := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses} {
		if slices.ContainsFunc(all, func(c corev1.ContainerStatus) bool { return c.State.Running != nil }) {
			return true
		}
	}
	return p.Status.Phase == corev1.PodRunning
}

// ownedByNode reports whether a pod comes and goes with the node: a DaemonSet's, or one from a file of the kubelet's.
func ownedByNode(p *corev1.Pod) bool {
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	for i := range p.OwnerReferences {
		if o := &p.OwnerReferences[i]; o.Kind == "DaemonSet" && o.Controller != nil && *o.Controller && strings.HasPrefix(o.APIVersion, "apps/") {
			return true
		}
	}
	return false
}

// nodeNamed reads a node.
func (f *Fencer) nodeNamed(ctx context.Context, name string) (n *corev1.Node, err error) {
	_, err = cluster.List(ctx, f.k, cluster.Nodes, cluster.Selection{Fields: "metadata.name=" + name}, func(x *corev1.Node) error {
		n = x
		return nil
	})
	if err == nil && n == nil {
		err = fault.New(fault.NotFound, "the cluster has no node %q", name)
	}
	return n, err
}

// noteNode keeps what a node says of its fence.
func (f *Fencer) noteNode(n *corev1.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := Read(n)
	if m.Epoch != 0 {
		f.closed[n.Name] = m.NodeFence
	} else {
		delete(f.closed, n.Name)
	}
	if !m.Stands {
		f.forgetBeat(n.Name)
	}
}

// forgetBeat has the kubelet of a node without a fence that stands be heard anew after the next one, of the same epoch
// too. The caller holds the lock.
func (f *Fencer) forgetBeat(node string) {
	if b, known := f.beats[node]; known {
		b.epoch = 0
		f.beats[node] = b
	}
}

// See keeps what a list of nodes says of fences.
func (f *Fencer) See(nodes []fleet.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range nodes {
		n := &nodes[i]
		if was, known := f.closed[n.Name]; n.Fence == 0 {
			delete(f.closed, n.Name)
			f.forgetBeat(n.Name)
		} else if !known || was.Epoch != n.Fence {
			f.closed[n.Name] = engine.NodeFence{Epoch: n.Fence}
		}
	}
}

// Refuse is the error of a launch that a fence keeps from one of its nodes, else nil. It asks nobody.
func (f *Fencer) Refuse(ref engine.Ref, claims []fleet.Claim) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range claims {
		if to, ok := f.closed[claims[i].Node]; ok {
			return engine.OnFenced(ref, claims[i].Node, to)
		}
	}
	return nil
}

// Empty looks what is on a node; see engine.NodeFencer.
func (f *Fencer) Empty(ctx context.Context, node string) (c engine.NodeContents, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	n, err := f.nodeNamed(ctx, node)
	if err != nil {
		return c, err
	}
	m := Read(n)
	c.Looked = []string{"pods"}
	if n.Spec.Unschedulable {
		c.Drained = "cordoned (kubectl uncordon " + node + ")"
	}
	if err := f.listenTo(ctx, n, m, &c); err != nil { // before the pods: what it has started before is listed
		return c, err
	}
	spared := map[types.UID]bool{}
	err = f.eachPod(ctx, node, func(p *corev1.Pod) error {
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		switch {
		case ownedByNode(p):
			spared[p.UID] = true
		case !ended || runsContainer(p):
			c.Work = append(c.Work, engine.NodeWork{
				Kind: "pod", Name: p.Namespace + "/" + p.Name, Ours: f.server != "" && p.Labels[render.LabelServer] == f.server,
			})
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	if err := f.addClaims(ctx, node, spared, &c); err != nil {
		return c, err
	}
	if n, err = f.nodeNamed(ctx, node); err != nil { // as it is after the lists
		return c, err
	}
	f.noteNode(n)
	if now := Read(n); now.Stands && m.Stands && now.Epoch == m.Epoch { // before the lists and after them
		to := now.NodeFence
		c.Fence = &to
	}
	c.At = time.Now().Round(0)
	return c, nil
}

// addClaims adds claims of the node's devices, but for those that only pods of the node's own have.
func (f *Fencer) addClaims(ctx context.Context, node string, spared map[types.UID]bool, c *engine.NodeContents) error {
	var held []engine.NodeWork
	err := cluster.Unbroken(func() error {
		held = nil
		_, err := cluster.List(ctx, f.k, dra.Claims, cluster.Selection{}, func(x *resourcev1.ResourceClaim) error {
			if !slices.ContainsFunc(dra.Held(x), func(h dra.Handle) bool { return h.Pool == node }) ||
				!slices.ContainsFunc(x.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return !spared[r.UID] }) {
				return nil
			}
			held = append(held, engine.NodeWork{Kind: "device", Name: "ResourceClaim " + x.Namespace + "/" + x.Name, Ours: f.server != "" && x.Labels[render.LabelServer] == f.server})
			return nil
		})
		return err
	})
	switch k := fault.KindOf(err); {
	case err == nil:
		c.Work, c.Looked = append(c.Work, held...), append(c.Looked, "claimed devices")
		return nil
	case k == fault.NotFound || k == fault.Unsupported: // before 1.34 clusters have no such thing
		return nil
	case k == fault.Permission:
		c.Unknown = append(c.Unknown, "which devices of the node are claimed: "+err.Error())
		return nil
	}
	return err
}

// listenTo says whether the node's kubelet answers.
func (f *Fencer) listenTo(ctx context.Context, n *corev1.Node, m Mark, c *engine.NodeContents) error {
	unknown := func(format string, args ...any) { c.Unknown = append(c.Unknown, fmt.Sprintf(format, args...)) }
	i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 || n.Status.Conditions[i].Status != corev1.ConditionTrue {
		text := "it has not reported yet"
		if i >= 0 {
			text = cmp.Or(n.Status.Conditions[i].Message, n.Status.Conditions[i].Reason, "it is not ready")
		}
		unknown("the kubelet of %s: %s", n.Name, text)
	}
	var lease coordinationv1.Lease
	err := f.k.Get(ctx, Leases, LeaseNamespace, n.Name, &lease)
	switch k := fault.KindOf(err); {
	case err != nil && (k == fault.Permission || k == fault.NotFound):
		unknown("whether the kubelet of %s answers: %v", n.Name, err)
		return nil
	case err != nil:
		return err
	case lease.Spec.RenewTime == nil:
		unknown("the kubelet of %s has never renewed its lease", n.Name)
		return nil
	}
	renewed, now := lease.Spec.RenewTime.Time, time.Now()
	lasts := 40 * time.Second
	if s := lease.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		lasts = time.Duration(*s) * time.Second
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var epoch uint64
	if m.Stands {
		epoch = m.Epoch
	}
	b, known := f.beats[n.Name]
	if !known {
		b = beat{last: renewed, changed: now}
	}
	if !known || b.epoch != epoch {
		b.epoch, b.first = epoch, renewed
	}
	if !renewed.Equal(b.last) {
		b.last, b.changed = renewed, now
	}
	f.beats[n.Name] = b
	switch {
	case epoch != 0 && !b.last.After(b.first):
		unknown("the kubelet of %s has not been heard of since the fence; it was last at %s", n.Name, renewed.UTC().Format(time.RFC3339))
	case now.Sub(b.changed) > lasts:
		unknown("the kubelet of %s has been silent for %s", n.Name, now.Sub(b.changed).Round(time.Second))
	}
	return nil
}
