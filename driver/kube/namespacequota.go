package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/quota"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// quotaOf returns a namespace, which is followed from the first time on. The caller holds the
// lock.
func (e *Engine) quotaOf(namespace string) *quota.Namespace {
	if t := e.tenants[namespace]; t != nil {
		return t
	}
	t := quota.New(namespace)
	e.tenants[namespace] = t
	if e.ctx.Err() == nil {
		e.wg.Go(func() { e.followQuotas(namespace, t) })
		e.wg.Go(func() { e.followRanges(namespace, t) })
	}
	return t
}

// followQuotas keeps a namespace's quotas and says when they have more room.
func (e *Engine) followQuotas(namespace string, t *quota.Namespace) {
	var seen map[string]*corev1.ResourceQuota // of a list that has not ended
	cluster.Follow(e.ctx, e.k, cluster.ResourceQuotas, cluster.Selection{Namespace: namespace}, cluster.Follower[corev1.ResourceQuota]{
		Begin: func() { seen = map[string]*corev1.ResourceQuota{} },
		Each: func(q *corev1.ResourceQuota, deleted bool) {
			if seen != nil {
				seen[q.Name] = q
				return
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			if t.UpdateQuota(q, deleted) {
				e.notifyQuotaRoom(t)
			}
		},
		Listed: func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			t.SetQuotas(seen)
			seen = nil
			e.notifyQuotaRoom(t)
		},
		Failed: e.watchFailure(cluster.ResourceQuotas, namespace, func() { t.SetQuotas(nil) }),
	})
}

// followRanges keeps a namespace's limit ranges.
func (e *Engine) followRanges(namespace string, t *quota.Namespace) {
	var seen map[string]*corev1.LimitRange // of a list that has not ended
	cluster.Follow(e.ctx, e.k, cluster.LimitRanges, cluster.Selection{Namespace: namespace}, cluster.Follower[corev1.LimitRange]{
		Begin: func() { seen = map[string]*corev1.LimitRange{} },
		Each: func(r *corev1.LimitRange, deleted bool) {
			if seen != nil {
				seen[r.Name] = r
				return
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			t.UpdateRange(r, deleted)
		},
		Listed: func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			t.SetRanges(seen)
			seen = nil
		},
		Failed: e.watchFailure(cluster.LimitRanges, namespace, func() { t.SetRanges(nil) }),
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
func (e *Engine) notifyQuotaRoom(t *quota.Namespace) {
	if !t.IsAwaited() {
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
			jobs, any := e.jobsWithRoom(time.Now())
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
	pods := func(ref engine.Ref, o *order) func() []*corev1.Pod {
		return func() []*corev1.Pod { return e.renderAttempt(ref, o).Pods("") }
	}
	now := time.Now()
	more, err := t.Reserve(&quota.Request{
		Ref: ref, Job: o.Job.ID, Name: o.Job.Name(), Ahead: ahead, Limit: o.Job.Spec.TimeLimit, Pods: pods(ref, o),
		Running: func() (all []quota.Running) {
			for _, a := range e.attempts {
				if !a.ended && a.order != nil && a.namespace == o.Namespace {
					all = append(all, quota.Running{Usage: &a.takes, Pods: pods(a.ref, a.order), End: a.latestEnd(now)})
				}
			}
			return all
		},
	}, now)
	if err != nil {
		for _, other := range e.tenants {
			if other != t {
				other.Withdraw(o.Job.ID)
			}
		}
		return err
	}
	if more {
		e.notifyQuotaRoom(t)
	}
	return nil
}

// latestEnd is when an attempt ends at the latest; zero: nobody knows. The caller holds the lock.
func (a *attempt) latestEnd(now time.Time) time.Time {
	limit := a.order.Job.Spec.TimeLimit
	if limit <= 0 || a.report.Suspended {
		return time.Time{}
	}
	if !a.report.Started.IsZero() {
		now = a.report.Started
	}
	return now.Add(limit)
}

// jobsWithRoom lists the jobs for which quotas may have room now. any: a job may have room of which
// nobody knows what it waits for. The caller holds the lock.
func (e *Engine) jobsWithRoom(now time.Time) (jobs []job.ID, any bool) {
	for _, t := range e.tenants {
		some, more := t.JobsWithRoom(now)
		jobs, any = append(jobs, some...), any || more
	}
	return jobs, any
}

// releaseQuota gives back what reserveQuota has reserved, if the attempt will make no pods any more. The
// caller holds the lock.
func (e *Engine) releaseQuota(namespace string, ref engine.Ref) {
	t := e.tenants[namespace]
	if t != nil && t.Release(ref) {
		e.notifyQuotaRoom(t)
	}
}

// releaseCountedQuota gives back what reserveQuota has reserved once the cluster's own count has it: an API server
// counts a pod before it says that there is one.
func (e *Engine) releaseCountedQuota(a *attempt) {
	e.mu.Lock()
	t := e.tenants[a.namespace]
	held := t != nil && t.HasReserved(a.ref)
	e.mu.Unlock()
	if !held {
		return
	}
	fresh := map[string]*corev1.ResourceQuota{}
	ctx, cancel := e.calls.callContext()
	defer cancel()
	_, err := cluster.List(ctx, e.k, cluster.ResourceQuotas, cluster.Selection{Namespace: a.namespace}, func(q *corev1.ResourceQuota) error {
		fresh[q.Name] = q
		return nil
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		fresh = nil
	}
	t.Counted(a.ref, fresh)
}

// checkNamespaceLimits says why pods would never be let into the namespace as they are; nil: they may be.
func (e *Engine) checkNamespaceLimits(a *attempt, pods []*corev1.Pod) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.quotaOf(a.namespace).CheckPods(pods); err != nil {
		return &never{engine.Refused, err}
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
		return &never{engine.Refused, fault.New(fault.Invalid, "namespace %s takes no such pods: %s", a.namespace, plainWords(err)).Advise("%s", mendSecurity(&e.cfg.Terms, a.namespace, a.order.Job.Spec.Owner))}
	case has("failed quota: ", " per Container is ", " per Pod is "):
		return &never{engine.Refused, fmt.Errorf("namespace %s: %s", a.namespace, plainWords(err))}
	case e.calls.isNamespaceMissing(a.namespace, err):
		return e.noNamespace(a)
	}
	return err
}

// noNamespace is for what waits until its namespace is made.
func (e *Engine) noNamespace(a *attempt) error {
	e.mu.Lock()
	e.quotaOf(a.namespace).AwaitRoom()
	e.mu.Unlock()
	return limitedError(fault.New(fault.NotFound, "there is no namespace %s; an administrator makes it: kubectl create namespace %s, and gives it the roles that cox pool check %s names", a.namespace, a.namespace, e.cfg.Terms.Pool))
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
func mendSecurity(t *settings.Terms, namespace string, owner job.Owner) string {
	if owner.UID == 0 && !t.AsImage {
		return "submit it as another user than root"
	}
	for _, p := range t.Paths {
		if p.Volume.Kind == settings.Host {
			return fmt.Sprintf("path %s is of the node (hostPath), which only a namespace of the level privileged takes", p.Prefix)
		}
	}
	return fmt.Sprintf("kubectl get namespace %s --show-labels shows the level (pod-security.kubernetes.io/enforce)", namespace)
}

var _ engine.CapacityNotifier = (*Engine)(nil)
