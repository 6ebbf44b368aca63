package kube

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// watchPods follows this server's pods in a namespace until the engine is closed.
func (e *Engine) watchPods(namespace string) {
	var seen map[types.UID]bool // of a list that has not ended
	said := ""
	cluster.Follow(e.ctx, e.k, cluster.Pods, cluster.Selection{Namespace: namespace, Labels: render.LabelServer + "=" + e.log.server, Lean: true}, cluster.Follower[corev1.Pod]{
		Begin: func() { seen = map[types.UID]bool{} },
		Each: func(p *corev1.Pod, deleted bool) {
			if seen != nil {
				seen[p.UID] = true
			}
			e.updatePod(podstatus.Strip(p), deleted, seen != nil)
		},
		Listed: func() {
			e.markMissingPods(namespace, seen)
			seen = nil
		},
		Failed: func(err error) {
			if now := err.Error(); now != said { // a namespace that is not there is asked for again and again
				said = now
				e.cfg.Log.Warn("kubernetes", "namespace", namespace, "error", err)
				e.noteListFailure(namespace, err)
			}
		},
	})
}

// noteListFailure takes why the pods of a namespace cannot be seen. Attempts that wait for that say it.
func (e *Engine) noteListFailure(namespace string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listed[namespace] {
		return
	}
	e.hidden[namespace] = err
	for _, a := range e.attempts {
		if a.namespace == namespace && !a.ended {
			a.wakeUp()
		}
	}
}

// updatePod takes what a pod is now. Of one that is listed nobody knows what it was since it was seen last.
func (e *Engine) updatePod(p *corev1.Pod, deleted, listed bool) {
	ref, ok := render.RefOf(p)
	if !ok {
		return
	}
	i := render.IndexOf(p)
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.attempts[ref]
	switch {
	case e.isForeignCopy(p, ref):
		if isHeldByFinalizer(p) && !deleted { // nobody else can have it end
			e.graves[graveOf(p)] = p
			e.wakeCleanup()
		} else {
			delete(e.graves, graveOf(p))
		}
		return
	case a == nil || a.ended || a.made != nil && (i < 0 || i >= len(a.made.Pods) || a.made.Pods[i] != p.UID):
		if deleted {
			delete(e.graves, graveOf(p))
			return
		}
		e.graves[graveOf(p)] = p
		e.wakeCleanup()
		return
	case i < 0 || i >= len(a.order.Nodes):
		return
	}
	is := &pod{Pod: p, seen: true, gone: deleted}
	if was := a.pods[i]; was != nil {
		is.taken = podstatus.AdmittedBefore(was.Pod, was.taken, p, listed)
	}
	is.noteDeletion(a.pods[i], time.Now())
	a.pods[i] = is
	e.publishEndpoints(a)
	a.wakeUp()
}

// isForeignCopy reports whether a pod with our labels is somebody's copy of one of ours, as to look into it: it
// has another name, or is in another namespace. The caller holds the lock.
func (e *Engine) isForeignCopy(p *corev1.Pod, ref engine.Ref) bool {
	a := e.attempts[ref]
	i := render.IndexOf(p)
	return i >= 0 && p.Name != podName(e, ref, i) || a != nil && a.namespace != p.Namespace
}

// isHeldByFinalizer reports whether a pod would be gone but for our finalizer, or others'.
func isHeldByFinalizer(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil && slices.Contains(p.Finalizers, render.Finalizer)
}

// graveOf is the key of a pod in graves.
func graveOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// markMissingPods takes the end of a list of a namespace: pods of it that were seen before and are not in
// it are gone.
func (e *Engine) markMissingPods(namespace string, seen map[types.UID]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listed[namespace] = true
	for _, a := range e.attempts {
		if a.namespace != namespace {
			continue
		}
		for _, p := range a.pods {
			if p.seen && !seen[p.UID] {
				p.gone = true
			}
		}
		if !a.ended {
			a.wakeUp()
		}
	}
	for name, p := range e.graves {
		if p.Namespace == namespace && !seen[p.UID] {
			delete(e.graves, name)
		}
	}
}

// wakeCleanup has the graves looked at. The caller holds the lock.
func (e *Engine) wakeCleanup() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// cleanUpLeftovers ends what is left of attempts that have ended or are not known: a pod that a create
// made too late, the finalizers of those whose end is written down, roots that nobody needs.
func (e *Engine) cleanUpLeftovers() {
	roots := time.NewTicker(10 * time.Minute)
	defer roots.Stop()
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		look := false
		select {
		case <-e.kick:
		case <-again.C:
		case <-roots.C:
			look = true
		case <-e.ctx.Done():
			return
		}
		failed := !e.deleteUnknownRoots(look)
		e.mu.Lock()
		all := make([]*corev1.Pod, 0, len(e.graves))
		for _, p := range e.graves {
			all = append(all, p)
		}
		e.mu.Unlock()
		for _, p := range all {
			if e.ctx.Err() != nil {
				return
			}
			done, err := e.cleanUpPod(p)
			if err != nil {
				if e.ctx.Err() != nil {
					return
				}
				e.cfg.Log.Warn("kubernetes", "pod", p.Name, "error", err)
				failed = true
				continue
			}
			e.mu.Lock()
			if done && e.graves[graveOf(p)] == p {
				delete(e.graves, graveOf(p))
			}
			e.mu.Unlock()
		}
		select {
		case e.buried <- struct{}{}:
		default:
		}
		if failed {
			again.Reset(5 * time.Second)
		}
	}
}

// cleanUpPod does the next thing for a pod that nobody waits for; what comes of it, the watch tells. false:
// it should have ended, and nobody says that it has; a look at its node may.
func (e *Engine) cleanUpPod(p *corev1.Pod) (bool, error) {
	ref, _ := render.RefOf(p)
	e.mu.Lock()
	known, foreign := e.attempts[ref] != nil, e.isForeignCopy(p, ref)
	e.mu.Unlock()
	m := podstatus.Read(p, ref, time.Now())
	m.OnSilence(p.Spec.NodeName, e.inventory.KubeletState)
	ctx, cancel := e.calls.callContext()
	defer cancel()
	if foreign { // the rest of it is its maker's
		if isHeldByFinalizer(p) {
			return true, e.calls.letGo(ctx, p)
		}
		return true, nil
	}
	if (!known || !m.Over) && p.DeletionTimestamp == nil {
		grace := render.Grace(0)
		if err := e.k.Delete(ctx, cluster.Pods, p.Namespace, p.Name, cluster.Deletion{UID: p.UID, Grace: &grace}); !isSettledError(err) {
			return true, err
		}
	}
	if m.Over && slices.Contains(p.Finalizers, render.Finalizer) {
		if err := e.calls.letGo(ctx, p); err != nil {
			return true, err
		}
	}
	return m.Over || !isHeldByFinalizer(p), e.calls.tearDownPod(ctx, p, m)
}

// isSettledError reports whether a call has done what there was to do, or there was nothing any more.
func isSettledError(err error) bool {
	k := fault.KindOf(err)
	return err == nil || k == fault.NotFound || k == fault.Conflict
}

// deleteUnknownRoots deletes the roots of attempts that are not known any more, if there may be any or all
// are to be looked at. false: it has to be tried again.
func (e *Engine) deleteUnknownRoots(all bool) bool {
	e.mu.Lock()
	due := all || e.rooted
	e.rooted = false
	e.mu.Unlock()
	if !due {
		return true
	}
	ctx, cancel := e.calls.callContext()
	defer cancel()
	var err error
	for _, ns := range e.spaces {
		err = errors.Join(err, e.deleteUnknownRootsIn(ctx, ns))
	}
	if err == nil || e.ctx.Err() != nil {
		return true
	}
	e.cfg.Log.Warn("kubernetes", "error", err)
	e.mu.Lock()
	e.rooted = true
	e.mu.Unlock()
	return false
}

// deleteUnknownRootsIn is deleteUnknownRoots for a namespace.
func (e *Engine) deleteUnknownRootsIn(ctx context.Context, namespace string) error {
	var old []engine.Ref
	_, err := cluster.List(ctx, e.k, cluster.Secrets, cluster.Selection{Namespace: namespace, Labels: render.LabelServer + "=" + e.log.server}, func(s *corev1.Secret) error {
		ref, ok := render.RefOf(s)
		e.mu.Lock()
		defer e.mu.Unlock()
		if ok && e.attempts[ref] == nil && s.DeletionTimestamp == nil {
			old = append(old, ref)
		}
		return nil
	})
	for _, ref := range old {
		if err == nil {
			err = e.calls.deleteRoot(ctx, namespace, ref)
		}
	}
	if err != nil && e.calls.isNamespaceMissing(namespace, err) {
		return nil
	}
	return err
}

// recheckLost wakes what may look different after a list of the nodes: uncertain attempts, and pods
// that are left over.
func (e *Engine) recheckLost() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.attempts {
		if !a.ended && a.report.Uncertain {
			a.wakeUp()
		}
	}
	if len(e.graves) > 0 {
		e.wakeCleanup()
	}
}

// askTaken reads the whole objects of pods that their kubelets refused and that were not seen before:
// their metadata says whether the kubelets had admitted them.
func (e *Engine) askTaken(a *attempt) error {
	e.mu.Lock()
	var ask []int
	for i, p := range a.pods {
		if p.taken == podstatus.AdmissionUnknown && a.report.Started.IsZero() && p.Spec.NodeName != "" && podstatus.IsForgotten(p.Pod) {
			ask = append(ask, i)
		}
	}
	e.mu.Unlock()
	return e.calls.forEach(len(ask), func(n int) error {
		e.mu.Lock()
		p := a.pods[ask[n]]
		e.mu.Unlock()
		var whole struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		}
		ctx, cancel := e.calls.callContext()
		defer cancel()
		err := e.k.Get(ctx, cluster.Pods, p.Namespace, p.Name, &whole)
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
		answer := podstatus.AdmissionOf(p.Pod, &whole.Metadata)
		e.mu.Lock()
		defer e.mu.Unlock()
		p.taken = cmp.Or(p.taken, answer)
		return nil
	})
}

// Leave is engine.Leaver's: it waits until no pod has our finalizer any more, deletes the roots that are
// left, and gives back the nodes that were kept. fault.Conflict: there are pods of which nobody can
// say whether they ended.
func (e *Engine) Leave(ctx context.Context) error {
	if e.cfg.Trial {
		return nil
	}
	return errors.Join(e.clearCluster(ctx), e.reserver.releaseNodes(ctx))
}

// clearCluster has everything gone that attempts have left in the cluster. None is launched any more.
func (e *Engine) clearCluster(ctx context.Context) error {
	e.mu.Lock()
	e.wakeCleanup()
	e.mu.Unlock()
	for {
		e.mu.Lock()
		left := make([]string, 0, len(e.graves))
		for name := range e.graves {
			left = append(left, name)
		}
		roots := map[engine.Ref]string{}
		for ref, a := range e.attempts {
			if roots[ref] = a.namespace; !a.ended {
				left = append(left, "attempt "+ref.String())
			}
		}
		e.mu.Unlock()
		if len(left) == 0 {
			for ref, namespace := range roots {
				if err := e.calls.deleteRoot(ctx, namespace, ref); err != nil {
					return err
				}
			}
			return nil
		}
		select {
		case <-e.buried:
		case <-ctx.Done():
			slices.Sort(left)
			return fault.New(fault.Conflict, "%s: %w", strings.Join(left, ", "), ctx.Err()).
				Advise("look whether they have ended; then: kubectl patch pod NAME --type=merge -p '{\"metadata\":{\"finalizers\":null}}'")
		}
	}
}
