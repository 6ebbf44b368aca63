package quota

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Namespace is the state of one namespace: its quotas and limit ranges, the pods that are about to
// be created there, and the jobs that wait.
type Namespace struct {
	name    string
	quotas  map[string]*corev1.ResourceQuota // nil: not seen yet, or the right to see them is missing
	ranges  map[string]*corev1.LimitRange    // nil: the same
	coming  map[engine.Ref][]*corev1.Pod     // of admitted attempts, until the quotas count them
	waiters map[job.ID]*waiter               // jobs that were told to wait; some may have given up
	waiting bool                             // a job waits for something else than a known quota
	crowded bool                             // a job waits for pods on a node to end
}

// New returns a namespace of which nothing is known yet.
func New(name string) *Namespace {
	return &Namespace{name: name, coming: map[engine.Ref][]*corev1.Pod{}, waiters: map[job.ID]*waiter{}}
}

// SetQuotas replaces the namespace's quotas. nil: nobody knows them.
func (n *Namespace) SetQuotas(all map[string]*corev1.ResourceQuota) { n.quotas = all }

// SetRanges replaces the namespace's limit ranges. nil: nobody knows them.
func (n *Namespace) SetRanges(all map[string]*corev1.LimitRange) { n.ranges = all }

// UpdateQuota takes a change of one quota and reports whether there may be more room now. Before
// SetQuotas it does nothing.
func (n *Namespace) UpdateQuota(q *corev1.ResourceQuota, deleted bool) (more bool) {
	if n.quotas == nil {
		return false
	}
	more = deleted || hasGrown(n.quotas[q.Name], q)
	if deleted {
		delete(n.quotas, q.Name)
	} else {
		n.quotas[q.Name] = q
	}
	return more
}

// UpdateRange takes a change of one limit range. Before SetRanges it does nothing.
func (n *Namespace) UpdateRange(r *corev1.LimitRange, deleted bool) {
	switch {
	case n.ranges == nil:
	case deleted:
		delete(n.ranges, r.Name)
	default:
		n.ranges[r.Name] = r
	}
}

// KnowsQuotas reports whether the namespace's quotas have been seen.
func (n *Namespace) KnowsQuotas() bool { return n.quotas != nil }

// HasQuotas reports whether the namespace has a quota, as far as is known.
func (n *Namespace) HasQuotas() bool { return len(n.quotas) > 0 }

// CountsServices reports whether a quota counts Services, or may do so: quotas that nobody has seen.
func (n *Namespace) CountsServices() bool {
	if n.quotas == nil {
		return true
	}
	for _, q := range n.quotas {
		for name := range q.Spec.Hard {
			if name == corev1.ResourceServices || strings.HasPrefix(string(name), "count/services") {
				return true
			}
		}
	}
	return false
}

// Request asks for room for the pods of an attempt.
type Request struct {
	Ref   engine.Ref
	Job   job.ID
	Name  string        // of the job, for people
	Ahead []job.ID      // the jobs before it in the queue
	Limit time.Duration // its time limit; 0: none
	Pods  func() []*corev1.Pod
	// Running lists the attempts of this namespace that have not ended.
	Running func() []Running
}

// Running is an attempt that has not ended.
type Running struct {
	Usage *Usage
	Pods  func() []*corev1.Pod // renders its pods; called if Usage lacks a quota
	End   time.Time            // when it ends at the latest; zero: nobody knows
}

// Usage caches what an attempt's pods take of each quota. The zero value is empty.
type Usage struct {
	byQuota map[types.UID]corev1.ResourceList
}

// Reserve reserves what an attempt's pods will take of the namespace's quotas, until Release or
// Counted. fault.Exhausted: a quota has no room, or has it for a job that comes first; the job is
// then known to wait. more reports that jobs may have waited for this one alone.
func (n *Namespace) Reserve(r *Request, now time.Time) (more bool, err error) {
	if len(n.quotas) == 0 || n.coming[r.Ref] != nil {
		delete(n.waiters, r.Job)
		return false, nil
	}
	pods, others := n.withDefaults(r.Pods()), n.comingPods()
	want, sums := chargeAll(n.quotas, pods), chargeAll(n.quotas, others)
	wait := func(quota, why string, after job.ID) error {
		n.addWaiter(r, want, after, now)
		return fault.New(fault.Exhausted, "quota %s of namespace %s: %s", quota, n.name, why)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if why := shortfall(n.quotas[name], want[name], sums[name]); why != "" {
			return false, wait(name, why, 0)
		}
	}
	if slices.ContainsFunc(r.Ahead, func(id job.ID) bool { return n.waiters[id] != nil }) {
		views := n.views(sums, r.Running())
		end := time.Time{}
		if r.Limit > 0 {
			end = now.Add(r.Limit)
		}
		before := n.jobsAhead(views, r.Job, r.Ahead, now)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if first, why := views[name].mustYieldTo(want[name], before, now, end); why != "" {
				return false, wait(name, why, first)
			}
		}
	}
	more = n.Withdraw(r.Job)
	n.coming[r.Ref] = pods
	return more, nil
}

// HasReserved reports whether something is reserved for an attempt.
func (n *Namespace) HasReserved(ref engine.Ref) bool { return n.coming[ref] != nil }

// Release gives back what is reserved for an attempt that will create no pods. false: nothing was.
func (n *Namespace) Release(ref engine.Ref) bool {
	if n.coming[ref] == nil {
		return false
	}
	delete(n.coming, ref)
	return true
}

// Counted gives back what is reserved for an attempt whose pods the cluster has counted. fresh: the
// quotas with these pods; nil: they could not be read.
func (n *Namespace) Counted(ref engine.Ref, fresh map[string]*corev1.ResourceQuota) {
	if fresh != nil && n.quotas != nil {
		n.quotas = fresh
	}
	delete(n.coming, ref)
}

// Withdraw forgets that a job waits. false: it did not.
func (n *Namespace) Withdraw(id job.ID) bool {
	_, waits := n.waiters[id]
	delete(n.waiters, id)
	return waits
}

// AwaitRoom notes that a job waits for something that no quota tells.
func (n *Namespace) AwaitRoom() { n.waiting = true }

// AwaitPods notes that a job waits for pods on a node to end.
func (n *Namespace) AwaitPods() { n.crowded = true }

// AwaitsPods reports whether a job waits for pods on a node to end.
func (n *Namespace) AwaitsPods() bool { return n.crowded }

// IsAwaited reports whether any job waits for room in the namespace.
func (n *Namespace) IsAwaited() bool { return n.waiting || n.crowded || len(n.waiters) > 0 }

// JobsWithRoom lists the jobs that the quotas may have room for now, without those that another job
// keeps waiting. any: a job may have room of which nobody knows what it waits for; that is reported
// once.
func (n *Namespace) JobsWithRoom(now time.Time) (jobs []job.ID, any bool) {
	n.dropStaleWaiters(now)
	any = n.waiting || n.crowded || len(n.quotas) == 0 && len(n.waiters) > 0
	n.waiting, n.crowded = false, false
	sums := chargeAll(n.quotas, n.comingPods())
	for id, w := range n.waiters {
		first := n.waiters[w.after]
		fits := first == nil || now.Sub(first.at) >= retryAfter
		for name, want := range w.want {
			if q := n.quotas[name]; q != nil {
				fits = fits && shortfall(q, want, sums[name]) == ""
			}
		}
		if fits {
			jobs = append(jobs, id)
		}
	}
	return jobs, any
}

// CheckPods returns why the namespace would never admit pods as they are: a limit range refuses
// them, or a quota requires an amount that they do not state.
func (n *Namespace) CheckPods(pods []*corev1.Pod) error {
	if len(n.ranges)+len(n.quotas) == 0 {
		return nil
	}
	for _, p := range n.withDefaults(pods) {
		for _, name := range slices.Sorted(maps.Keys(n.ranges)) {
			if why := limitRangeViolation(n.ranges[name], p); why != "" {
				return fault.New(fault.Invalid, "namespace %s: %s", n.name, why).Advise("ask for what it allows; kubectl describe limitrange %s --namespace %s shows it", name, n.name)
			}
		}
		if n.ranges == nil { // the pods' defaults are not known
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(n.quotas)) {
			if why := missingRequest(n.quotas[name], p); why != "" {
				return fault.New(fault.Invalid, "namespace %s: %s", n.name, why).Advise("ask for it, as with --mem, or give the namespace a limit range with defaults")
			}
		}
	}
	return nil
}

// withDefaults are pods with the defaults of the namespace's limit ranges.
func (n *Namespace) withDefaults(pods []*corev1.Pod) (out []*corev1.Pod) {
	ranges := slices.Collect(maps.Values(n.ranges))
	for _, p := range pods {
		out = append(out, withLimitRangeDefaults(p, ranges))
	}
	return out
}

// comingPods lists the pods that are reserved for.
func (n *Namespace) comingPods() (out []*corev1.Pod) {
	for _, more := range n.coming {
		out = append(out, more...)
	}
	return out
}

// addWaiter notes that a job was told to wait. after: the job that comes first, if that alone keeps it.
func (n *Namespace) addWaiter(r *Request, want map[string]corev1.ResourceList, after job.ID, now time.Time) {
	n.dropStaleWaiters(now)
	w := n.waiters[r.Job]
	if w == nil {
		w = &waiter{id: r.Job}
		n.waiters[r.Job] = w
	}
	w.name, w.want, w.after, w.at = r.Name, want, after, now
}

// dropStaleWaiters drops the jobs that were not launched for long: they were cancelled, or wait for
// something else.
func (n *Namespace) dropStaleWaiters(now time.Time) {
	maps.DeleteFunc(n.waiters, func(_ job.ID, w *waiter) bool { return now.Sub(w.at) > forgetAfter })
}

// jobsAhead lists the jobs that wait for the namespace's quotas, come before a job and could have room.
func (n *Namespace) jobsAhead(views map[string]*view, own job.ID, ahead []job.ID, now time.Time) (out []*waiter) {
	for _, id := range ahead {
		w := n.waiters[id]
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
		if none && now.Sub(w.since) >= hopelessAfter {
			continue
		}
		out = append(out, w)
	}
	return out
}

// views are the namespace's quotas with what comes and what running attempts hold.
func (n *Namespace) views(sums map[string]corev1.ResourceList, running []Running) map[string]*view {
	out := map[string]*view{}
	for name, q := range n.quotas {
		out[name] = &view{ResourceQuota: q, coming: sums[name]}
	}
	for i := range running {
		r := &running[i]
		var pods []*corev1.Pod
		for name, v := range out {
			sum, known := r.Usage.byQuota[v.UID]
			if !known {
				if pods == nil {
					pods = n.withDefaults(r.Pods())
				}
				sum = chargeAll(map[string]*corev1.ResourceQuota{name: v.ResourceQuota}, pods)[name]
				if r.Usage.byQuota == nil {
					r.Usage.byQuota = map[types.UID]corev1.ResourceList{}
				}
				r.Usage.byQuota[v.UID] = sum
			}
			if len(sum) > 0 {
				v.ours = append(v.ours, holding{sum, r.End})
			}
		}
	}
	return out
}
