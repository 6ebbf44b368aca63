package kube

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Whose turn it is in quotas that have no room for all. A job waits for those that come before it
// in the queue (engine.Launch.Ahead), as far as it would take what these wait for, unless it ends
// before they could begin.

// wanting is a job that was told to wait for quotas of a namespace.
type wanting struct {
	id    job.ID
	name  string                         // of the job
	want  map[string]corev1.ResourceList // by quota: what its pods take of it
	at    time.Time                      // when it was launched last
	after job.ID                         // which comes first, if that alone kept it then; 0: there was no room
	since time.Time                      // since when others leave it no room, whatever of ours ends; zero: they do
}

const (
	// For how long others have to leave a job no room before nobody waits for it: what is
	// counted is behind what has ended.
	hopelessFor = time.Minute
	// After how long those are forgotten that were not launched again: more than control lets pass
	// between two launches of one that waits.
	wantingFor = 15 * time.Minute
	// How long after the last launch of one that comes first those that it keeps are not tried when
	// there is more room.
	keepsFor = time.Minute
)

// quotaCharges is what pods take of each quota that counts them.
func quotaCharges(all map[string]*corev1.ResourceQuota, pods []*corev1.Pod) map[string]corev1.ResourceList {
	out := map[string]corev1.ResourceList{}
	for name, q := range all {
		sum := corev1.ResourceList{}
		for _, p := range pods {
			if quotaCoversPod(q, p) {
				addTo(sum, quotaCharge(p))
			}
		}
		if len(sum) > 0 {
			out[name] = sum
		}
	}
	return out
}

// part is what one attempt of ours holds of a quota, and until when at the latest.
type part struct {
	counts corev1.ResourceList
	end    time.Time // zero: nobody knows
}

// view is a quota as a job meets it that wants to begin.
type view struct {
	*corev1.ResourceQuota
	coming corev1.ResourceList // by what is on its way, and the cluster has not counted
	ours   []part
}

// freeAmount is what nobody has of an amount.
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

// conflictingResource is an amount of which there is not enough for a job and for those before it; "": of all
// there is.
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

// roomAt is when there is room for what is wanted, by the time limits of what holds it; zero: nobody
// knows.
func (v *view) roomAt(want corev1.ResourceList, now time.Time) time.Time {
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
	ends := slices.DeleteFunc(slices.Clone(v.ours), func(h part) bool { return h.end.IsZero() })
	slices.SortFunc(ends, func(a, b part) int { return a.end.Compare(b.end) })
	for _, h := range ends {
		addTo(left, h.counts)
		if enough() {
			return h.end
		}
	}
	return time.Time{}
}

// mustYieldTo says why a job does not begin before those that wait and come before it, and which of
// them keeps it; "": it may. end is when it ends if it begins now; zero: nobody knows.
func (v *view) mustYieldTo(want corev1.ResourceList, before []*wanting, now, end time.Time) (first job.ID, why string) {
	sum := corev1.ResourceList{}
	for _, w := range before {
		addTo(sum, w.want[v.Name])
		name := v.conflictingResource(want, sum)
		if name == "" {
			continue
		}
		if at := v.roomAt(sum, now); !end.IsZero() && !at.IsZero() && !end.After(at) {
			return 0, "" // those who come after that one wait longer still
		}
		n, its := want[name], w.want[v.Name][name]
		return w.id, fmt.Sprintf("%s: %s asked for, and job %s comes first, which waits for %s", name, n.String(), w.name, its.String())
	}
	return 0, ""
}

// jobsAhead lists those that wait for quotas of a namespace, come before a job and could have room.
// The caller holds the lock.
func (e *Engine) jobsAhead(t *namespaceQuota, views map[string]*view, own job.ID, ahead []job.ID, now time.Time) (out []*wanting) {
	for _, id := range ahead {
		w := t.wants[id]
		if w == nil || id == own {
			continue
		}
		none := false
		for name, want := range w.want {
			none = none || views[name] != nil && views[name].isHopeless(want)
		}
		switch {
		case !none:
			w.since = time.Time{}
		case w.since.IsZero():
			w.since = now
		}
		if none && now.Sub(w.since) >= hopelessFor {
			continue
		}
		out = append(out, w)
	}
	return out
}

// quotaViews are a namespace's quotas. The caller holds the lock.
func (e *Engine) quotaViews(t *namespaceQuota, namespace string, coming []*corev1.Pod, now time.Time) map[string]*view {
	sums := quotaCharges(t.quotas, coming)
	out := map[string]*view{}
	for name, q := range t.quotas {
		out[name] = &view{ResourceQuota: q, coming: sums[name]}
	}
	ranges := slices.Collect(maps.Values(t.ranges))
	for _, a := range e.attempts {
		if a.ended || a.order == nil || a.namespace != namespace {
			continue
		}
		var pods []*corev1.Pod
		for name, v := range out {
			sum, known := a.takes[v.UID]
			if !known {
				if pods == nil {
					for _, p := range e.renderAttempt(a.ref, a.order).Pods("") {
						pods = append(pods, withLimitRangeDefaults(p, ranges))
					}
				}
				sum = quotaCharges(map[string]*corev1.ResourceQuota{name: v.ResourceQuota}, pods)[name]
				if a.takes == nil {
					a.takes = map[types.UID]corev1.ResourceList{}
				}
				a.takes[v.UID] = sum
			}
			if len(sum) > 0 {
				v.ours = append(v.ours, part{sum, a.latestEnd(now)})
			}
		}
	}
	return out
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

// mustWait notes that a job was told to wait for a namespace's quotas. after: the one that comes
// first, if that alone keeps it. The caller holds the lock.
func (e *Engine) mustWait(t *namespaceQuota, o *order, want map[string]corev1.ResourceList, after job.ID, now time.Time) {
	for _, other := range e.tenants {
		if other != t {
			delete(other.wants, o.Job.ID)
		}
	}
	t.dropStaleWaits(now)
	w := t.wants[o.Job.ID]
	if w == nil {
		if t.wants == nil {
			t.wants = map[job.ID]*wanting{}
		}
		w = &wanting{id: o.Job.ID}
		t.wants[o.Job.ID] = w
	}
	w.name, w.want, w.after, w.at = o.Job.Name(), want, after, now
}

// dropStaleWaits drops those that were not launched for long: they were cancelled, or wait for something
// else. The caller holds the Engine's lock.
func (t *namespaceQuota) dropStaleWaits(now time.Time) {
	maps.DeleteFunc(t.wants, func(_ job.ID, w *wanting) bool { return now.Sub(w.at) > wantingFor })
}

// roomFor lists the jobs for each of which quotas may have room now, without those that one keeps
// which comes first. any: nobody knows of all that wait what they wait for. none: there is no room
// for anybody. The caller holds the lock.
func (e *Engine) roomFor(now time.Time) (jobs []job.ID, any bool) {
	for _, t := range e.tenants {
		t.dropStaleWaits(now)
		any = any || t.waiting || t.crowded || len(t.quotas) == 0 && len(t.wants) > 0
		t.waiting, t.crowded = false, false
		var coming []*corev1.Pod
		for _, more := range t.coming {
			coming = append(coming, more...)
		}
		sums := quotaCharges(t.quotas, coming)
		for id, w := range t.wants {
			first := t.wants[w.after]
			fits := first == nil || now.Sub(first.at) >= keepsFor
			for name, want := range w.want {
				if q := t.quotas[name]; q != nil {
					fits = fits && quotaShortfall(q, want, sums[name]) == ""
				}
			}
			if fits {
				jobs = append(jobs, id)
			}
		}
	}
	return jobs, any
}

var _ engine.CapacityNotifier = (*Engine)(nil)
