package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// namespaceQuota is what is known of a namespace: its quotas and limit ranges, and which pods will
// count there that are not counted yet. Its fields are the Engine's, under its lock.
type namespaceQuota struct {
	quotas  map[string]*corev1.ResourceQuota // nil: not seen yet, or the right to see them is missing
	ranges  map[string]*corev1.LimitRange
	coming  map[engine.Ref][]*corev1.Pod // of attempts that are taken, until the quotas count them
	wants   map[job.ID]*wanting          // jobs that were told to wait; some may do no longer
	waiting bool                         // somebody was told to wait, and nobody knows for what
	crowded bool                         // somebody was told to wait for pods on a node to end
}

// quotaOf returns a namespace, which is followed from the first time on. The caller holds the
// lock.
func (e *Engine) quotaOf(namespace string) *namespaceQuota {
	if t := e.tenants[namespace]; t != nil {
		return t
	}
	t := &namespaceQuota{coming: map[engine.Ref][]*corev1.Pod{}}
	e.tenants[namespace] = t
	if e.ctx.Err() == nil {
		e.wg.Go(func() { e.followQuotas(namespace, t) })
		e.wg.Go(func() { e.followRanges(namespace, t) })
	}
	return t
}

// followQuotas keeps a namespace's quotas and says when they have more room.
func (e *Engine) followQuotas(namespace string, t *namespaceQuota) {
	var seen map[string]*corev1.ResourceQuota // of a list that has not ended
	cluster.Follow(e.ctx, e.k, quotas, cluster.Selection{Namespace: namespace}, cluster.Follower[corev1.ResourceQuota]{
		Begin: func() { seen = map[string]*corev1.ResourceQuota{} },
		Each: func(q *corev1.ResourceQuota, deleted bool) {
			if seen != nil {
				seen[q.Name] = q
				return
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			if t.quotas == nil {
				return
			}
			more := deleted || quotaHasGrown(t.quotas[q.Name], q)
			if deleted {
				delete(t.quotas, q.Name)
			} else {
				t.quotas[q.Name] = q
			}
			if more {
				e.notifyQuotaRoom(t)
			}
		},
		Listed: func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			t.quotas, seen = seen, nil
			e.notifyQuotaRoom(t)
		},
		Failed: e.watchFailure(quotas, namespace, func() { t.quotas = nil }),
	})
}

// followRanges keeps a namespace's limit ranges.
func (e *Engine) followRanges(namespace string, t *namespaceQuota) {
	var seen map[string]*corev1.LimitRange // of a list that has not ended
	cluster.Follow(e.ctx, e.k, ranges, cluster.Selection{Namespace: namespace}, cluster.Follower[corev1.LimitRange]{
		Begin: func() { seen = map[string]*corev1.LimitRange{} },
		Each: func(r *corev1.LimitRange, deleted bool) {
			if seen != nil {
				seen[r.Name] = r
				return
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			switch {
			case t.ranges == nil:
			case deleted:
				delete(t.ranges, r.Name)
			default:
				t.ranges[r.Name] = r
			}
		},
		Listed: func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			t.ranges, seen = seen, nil
		},
		Failed: e.watchFailure(ranges, namespace, func() { t.ranges = nil }),
	})
}

// watchFailure logs once what cannot be followed. What may not be seen is forgotten: the API server
// says then what does not fit.
func (e *Engine) watchFailure(r cluster.Resource, namespace string, forget func()) func(error) {
	said := ""
	return func(err error) {
		if fault.KindOf(err) == fault.Permission {
			e.mu.Lock()
			forget()
			e.mu.Unlock()
		}
		if now := err.Error(); now != said {
			said = now
			e.cfg.Log.Warn("kubernetes", "followed", r.String(), "namespace", namespace, "error", err)
		}
	}
}

// notifyQuotaRoom tells that a namespace has more room, if anybody waits for it. The caller holds the
// lock.
func (e *Engine) notifyQuotaRoom(t *namespaceQuota) {
	if !t.waiting && !t.crowded && len(t.wants) == 0 {
		return
	}
	select {
	case e.room <- struct{}{}:
	default:
	}
}

// WatchCapacity is engine.CapacityNotifier's: quotas have more room, or may have. One caller at a time is told.
func (e *Engine) WatchCapacity(ctx context.Context, f func(jobs ...job.ID)) {
	for {
		select {
		case <-e.room:
			e.mu.Lock()
			jobs, any := e.roomFor(time.Now())
			e.mu.Unlock()
			if any {
				f()
			} else if len(jobs) > 0 {
				f(jobs...)
			}
		case <-ctx.Done():
			return
		}
		pause := time.NewTimer(time.Second) // many pods end at once
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

// reserveQuota reserves what an attempt's pods will take of the namespace's quotas. fault.Exhausted: a
// quota has no room now, or what it has is for those who come before it.
func (e *Engine) reserveQuota(ref engine.Ref, o *order, ahead []job.ID) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.quotaOf(o.Namespace)
	if len(t.quotas) == 0 || t.coming[ref] != nil {
		delete(t.wants, o.Job.ID)
		return nil
	}
	var pods, others []*corev1.Pod
	for _, p := range e.renderAttempt(ref, o).Pods("") {
		pods = append(pods, withLimitRangeDefaults(p, slices.Collect(maps.Values(t.ranges))))
	}
	for _, more := range t.coming {
		others = append(others, more...)
	}
	now, want, sums := time.Now(), quotaCharges(t.quotas, pods), quotaCharges(t.quotas, others)
	wait := func(name, why string, after job.ID) error {
		e.mustWait(t, o, want, after, now)
		return fault.New(fault.Exhausted, "quota %s of namespace %s: %s", name, o.Namespace, why)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if why := quotaShortfall(t.quotas[name], want[name], sums[name]); why != "" {
			return wait(name, why, 0)
		}
	}
	if slices.ContainsFunc(ahead, func(id job.ID) bool { return t.wants[id] != nil }) {
		views := e.quotaViews(t, o.Namespace, others, now)
		end := time.Time{}
		if limit := o.Job.Spec.TimeLimit; limit > 0 {
			end = now.Add(limit)
		}
		before := e.jobsAhead(t, views, o.Job.ID, ahead, now)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if first, why := views[name].mustYieldTo(want[name], before, now, end); why != "" {
				return wait(name, why, first)
			}
		}
	}
	if t.wants[o.Job.ID] != nil { // others may have waited for it alone
		delete(t.wants, o.Job.ID)
		e.notifyQuotaRoom(t)
	}
	t.coming[ref] = pods
	return nil
}

// releaseQuota gives back what reserveQuota has reserved, if the attempt will make no pods any more. The
// caller holds the lock.
func (e *Engine) releaseQuota(namespace string, ref engine.Ref) {
	t := e.tenants[namespace]
	if t == nil || t.coming[ref] == nil {
		return
	}
	delete(t.coming, ref)
	e.notifyQuotaRoom(t)
}

// releaseCountedQuota gives back what reserveQuota has reserved once the cluster's own count has it: an API server
// counts a pod before it says that there is one.
func (e *Engine) releaseCountedQuota(a *attempt) {
	e.mu.Lock()
	t := e.tenants[a.namespace]
	held := t != nil && t.coming[a.ref] != nil
	e.mu.Unlock()
	if !held {
		return
	}
	fresh := map[string]*corev1.ResourceQuota{}
	ctx, cancel := e.callContext()
	defer cancel()
	_, err := cluster.List(ctx, e.k, quotas, cluster.Selection{Namespace: a.namespace}, func(q *corev1.ResourceQuota) error {
		fresh[q.Name] = q
		return nil
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil && t.quotas != nil {
		t.quotas = fresh
	}
	delete(t.coming, a.ref)
}

// checkNamespaceLimits says why pods would never be let into the namespace as they are; nil: they may be.
func (e *Engine) checkNamespaceLimits(a *attempt, pods []*corev1.Pod) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.quotaOf(a.namespace)
	all := slices.Collect(maps.Values(t.ranges))
	if len(all)+len(t.quotas) == 0 {
		return nil
	}
	for _, p := range pods {
		p = withLimitRangeDefaults(p, all)
		for _, name := range slices.Sorted(maps.Keys(t.ranges)) {
			if why := limitRangeViolation(t.ranges[name], p); why != "" {
				return &never{engine.Refused, fault.New(fault.Invalid, "namespace %s: %s", a.namespace, why).Advise("ask for what it allows; kubectl describe limitrange %s --namespace %s shows it", name, a.namespace)}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(t.quotas)) {
			if t.ranges == nil { // what gives pods their defaults is not known
				break
			}
			if why := missingQuotaRequest(t.quotas[name], p); why != "" {
				return &never{engine.Refused, fault.New(fault.Invalid, "namespace %s: %s", a.namespace, why).Advise("ask for it, as with --mem, or give the namespace a limit range with defaults")}
			}
		}
	}
	return nil
}

// namespaceRefusal is what a refusal of the API server's means for an attempt, where it is the
// namespace's and no right is missing; nil: it is something else. The server's words are the
// only sign by which these differ.
func (e *Engine) namespaceRefusal(a *attempt, err error) error {
	if err == nil || fault.KindOf(err) != fault.Permission && fault.KindOf(err) != fault.NotFound {
		return err
	}
	if cluster.IsNamespace(err) {
		return e.noNamespace(a)
	}
	if cluster.Reason(err) != metav1.StatusReasonForbidden {
		return err
	}
	words := err.Error()
	has := func(all ...string) bool {
		return slices.ContainsFunc(all, func(s string) bool { return strings.Contains(words, s) })
	}
	switch {
	// What was let in by reserveQuota, and not by the API server, waits for its turn and not for room: its
	// own objects that are taken away would be that room.
	case has("exceeded quota: ", "status unknown for quota: ", "because it is being terminated"):
		return limitedError(fmt.Errorf("namespace %s: %s", a.namespace, plainWords(err)))
	case has("violates PodSecurity"):
		return &never{engine.Refused, fault.New(fault.Invalid, "namespace %s takes no such pods: %s", a.namespace, plainWords(err)).Advise("%s", e.mendSecurity(a))}
	case has("failed quota: ", " per Container is ", " per Pod is "):
		return &never{engine.Refused, fmt.Errorf("namespace %s: %s", a.namespace, plainWords(err))}
	case e.isNamespaceMissing(a.namespace, err):
		return e.noNamespace(a)
	}
	return err
}

// noNamespace is for what waits until its namespace is made.
func (e *Engine) noNamespace(a *attempt) error {
	e.mu.Lock()
	e.quotaOf(a.namespace).waiting = true
	e.mu.Unlock()
	return limitedError(fault.New(fault.NotFound, "there is no namespace %s; an administrator makes it: kubectl create namespace %s, and gives it the roles that cox pool check %s names", a.namespace, a.namespace, e.cfg.Terms.Pool))
}

// isNamespaceMissing reports whether something is forbidden because the namespace is not there: nobody has a
// role in it then.
func (e *Engine) isNamespaceMissing(namespace string, err error) bool {
	if fault.KindOf(err) != fault.Permission {
		return false
	}
	ctx, cancel := e.callContext()
	defer cancel()
	err = e.k.Get(ctx, cluster.Namespaces, "", namespace, nil)
	return err != nil && fault.KindOf(err) == fault.NotFound
}

// limitedError is for what a limit of the namespace's keeps.
func limitedError(err error) error { return &never{engine.Limited, err} }

// plainWords are an API server's, without what the call was.
func plainWords(err error) string {
	words := err.Error()
	if _, after, ok := strings.Cut(words, "is forbidden: "); ok {
		return after
	}
	return words
}

// mendSecurity is what helps a job whose pods are above its namespace's level.
func (e *Engine) mendSecurity(a *attempt) string {
	if o := a.order.Job.Spec.Owner; o.UID == 0 && !e.cfg.Terms.AsImage {
		return "submit it as another user than root"
	}
	for _, p := range e.cfg.Terms.Paths {
		if p.Volume.Kind == Host {
			return fmt.Sprintf("path %s is of the node (hostPath), which only a namespace of the level privileged takes", p.Prefix)
		}
	}
	return fmt.Sprintf("kubectl get namespace %s --show-labels shows the level (pod-security.kubernetes.io/enforce)", a.namespace)
}
