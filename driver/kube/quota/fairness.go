package quota

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/coxswain-sched/coxswain/model/job"
)

// waiter is a job that was told to wait for quotas of a namespace.
type waiter struct {
	id    job.ID
	name  string                         // of the job
	want  map[string]corev1.ResourceList // by quota: what its pods take of it
	at    time.Time                      // when it was launched last
	after job.ID                         // which comes first, if that alone kept it then; 0: there was no room
	since time.Time                      // since when others leave it no room, whatever of ours ends; zero: they do
}

const (
	// hopelessAfter is how long other people's pods leave a job no room before nobody waits for it:
	// the cluster's count lags behind pods that have ended.
	hopelessAfter = time.Minute
	// forgetAfter is how long a waiter is kept without another launch: more than control lets pass
	// between two launches of a waiting job.
	forgetAfter = 15 * time.Minute
	// retryAfter is how long after the last launch of a job that comes first the jobs behind it are
	// not tried when there is more room.
	retryAfter = time.Minute
)

// chargeAll is what pods take of each quota that counts them.
func chargeAll(all map[string]*corev1.ResourceQuota, pods []*corev1.Pod) map[string]corev1.ResourceList {
	out := map[string]corev1.ResourceList{}
	for name, q := range all {
		sum := corev1.ResourceList{}
		for _, p := range pods {
			if coversPod(q, p) {
				addTo(sum, podCharge(p))
			}
		}
		if len(sum) > 0 {
			out[name] = sum
		}
	}
	return out
}

// holding is what one attempt of ours holds of a quota, and until when at the latest.
type holding struct {
	counts corev1.ResourceList
	end    time.Time // zero: nobody knows
}

// view is a quota as it looks to a job that wants to begin.
type view struct {
	*corev1.ResourceQuota
	coming corev1.ResourceList // of pods that the cluster has not counted yet
	ours   []holding
}

// freeAmount is what is left of an amount.
func (v *view) freeAmount(name corev1.ResourceName) resource.Quantity {
	out := v.Status.Hard[name].DeepCopy()
	out.Sub(v.Status.Used[name])
	out.Sub(v.coming[name])
	return out
}

// isHopeless reports whether others hold so much that there is no room even if all of ours ends.
func (v *view) isHopeless(want corev1.ResourceList) bool {
	for name, n := range want {
		room, counted := v.Status.Hard[name]
		if !counted {
			continue
		}
		room = room.DeepCopy()
		others := v.Status.Used[name].DeepCopy()
		for i := range v.ours {
			others.Sub(v.ours[i].counts[name])
		}
		if others.Sign() > 0 {
			room.Sub(others)
		}
		if n.Cmp(room) > 0 {
			return true
		}
	}
	return false
}

// conflictingResource is an amount that does not suffice for a job and for the jobs before it;
// "": all do.
func (v *view) conflictingResource(want, before corev1.ResourceList) corev1.ResourceName {
	for _, name := range slices.Sorted(maps.Keys(v.Spec.Hard)) {
		n, first := want[name], before[name]
		if n.Sign() <= 0 || first.Sign() <= 0 {
			continue
		}
		sum := n.DeepCopy()
		sum.Add(first)
		if sum.Cmp(v.freeAmount(name)) > 0 {
			return name
		}
	}
	return ""
}

// earliestRoom is when there is room for what is wanted, by the time limits of the attempts that
// hold it; zero: nobody knows.
func (v *view) earliestRoom(want corev1.ResourceList, now time.Time) time.Time {
	left := corev1.ResourceList{}
	for name := range v.Status.Hard {
		left[name] = v.freeAmount(name)
	}
	enough := func() bool {
		for name, n := range want {
			if has, counted := left[name]; counted && n.Cmp(has) > 0 {
				return false
			}
		}
		return true
	}
	if enough() {
		return now
	}
	ends := slices.DeleteFunc(slices.Clone(v.ours), func(h holding) bool { return h.end.IsZero() })
	slices.SortFunc(ends, func(a, b holding) int { return a.end.Compare(b.end) })
	for _, h := range ends {
		addTo(left, h.counts)
		if enough() {
			return h.end
		}
	}
	return time.Time{}
}

// mustYieldTo says why a job does not begin before the waiting jobs ahead of it, and which of them
// keeps it; "": it may begin. end is when it would end if it began now; zero: nobody knows.
func (v *view) mustYieldTo(want corev1.ResourceList, before []*waiter, now, end time.Time) (first job.ID, why string) {
	sum := corev1.ResourceList{}
	for _, w := range before {
		addTo(sum, w.want[v.Name])
		name := v.conflictingResource(want, sum)
		if name == "" {
			continue
		}
		if at := v.earliestRoom(sum, now); !end.IsZero() && !at.IsZero() && !end.After(at) {
			return 0, "" // those who come after that one wait longer still
		}
		n, its := want[name], w.want[v.Name][name]
		return w.id, fmt.Sprintf("%s: %s asked for, and job %s comes first, which waits for %s", name, n.String(), w.name, its.String())
	}
	return 0, ""
}
