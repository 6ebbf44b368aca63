package kube

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/manifestpod"
	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// A job of kind job.Pods has the pods of a manifest, and no agent in them (driver/kube/manifestpod). What an agent
// would do is done here, or refused.

// isManifest reports whether a job has the pods of a manifest.
func (o *order) isManifest() bool { return o.Job.Spec.Program.Kind == job.Pods }

// readManifest reads the pods of a manifest; of another job there is nothing to read.
func (o *order) readManifest(t *settings.Terms) error {
	if !o.isManifest() {
		return nil
	}
	w, err := manifestpod.Parse(o.Job, o.Script, t)
	if err != nil {
		return err
	}
	o.work = w
	return nil
}

// unreadable is the end of an attempt whose manifest an earlier version had taken and this one cannot read.
func (o *order) unreadable() error {
	if o.isManifest() && o.work == nil {
		return &never{engine.Refused, fault.New(fault.Invalid, "this version of Coxswain cannot read the manifest of the job, which an earlier one had taken").Advise("submit it again")}
	}
	return nil
}

// checkManifestNodes refuses templates that ask for nodes by what Coxswain does not choose them. What the cluster
// does not answer is not certain.
func (e *Engine) checkManifestNodes(ctx context.Context, o *order) error {
	if o.work == nil {
		return nil
	}
	all, err := e.inventory.LastNodes(ctx)
	if err != nil {
		return nil //nolint:nilerr // it is not certain
	}
	nodes := make([]manifestpod.PoolNode, len(all))
	for i := range all {
		nodes[i] = manifestpod.PoolNode{Name: all[i].Node.Name, Labels: all[i].Labels, Features: all[i].Node.Features}
	}
	return o.work.CheckNodes(o.Job.Spec, nodes)
}

// hasNoAgent reports whether nothing of Coxswain runs in an attempt's pods.
func (a *attempt) hasNoAgent() bool { return a.order != nil && a.order.isManifest() }

// agentlessError refuses what the agent in the pods does, where there is none.
func agentlessError(what, mend string) error {
	return fault.New(fault.Unsupported, "%s the pods of a manifest: they run as they were written, without Coxswain's agent", what).Advise("%s", mend)
}

// createManifestObjects makes the objects of a manifest's file as those of an attempt.
func (e *Engine) createManifestObjects(a *attempt, way *cluster.Cluster, r *render.Attempt, root types.UID) error {
	w := a.order.work
	if w == nil {
		return nil
	}
	for _, c := range w.ConfigMaps(r, root) {
		if err := createObject(e.calls, way, cluster.ConfigMaps, c, func(there *corev1.ConfigMap) bool { return isOwner(root, there) }); err != nil {
			return err
		}
	}
	for _, s := range w.Services(r, root) {
		if err := e.makeManifestService(a, way, s, manifestpod.Shared(r)); err != nil {
			return err
		}
	}
	return nil
}

// makeManifestService makes a Service by the name that its manifest gives it. One of the same name that an ended
// attempt of ours has left is taken over; replicas of a service share theirs.
func (e *Engine) makeManifestService(a *attempt, way *cluster.Cluster, s *corev1.Service, shared bool) error {
	if shared {
		var err error
		for range clientTries {
			if err = e.makeClientService(way, s); fault.KindOf(err) != fault.Conflict {
				return err
			}
		}
		return &never{engine.LaunchFailed, err}
	}
	ctx, cancel := e.calls.callContext()
	defer cancel()
	err := way.Create(ctx, cluster.Services, s.Namespace, s, false, nil)
	if fault.KindOf(err) != fault.Conflict {
		return err
	}
	var there corev1.Service
	if got := e.k.Get(ctx, cluster.Services, s.Namespace, s.Name, &there); got != nil {
		if fault.KindOf(got) == fault.NotFound {
			return fault.New(fault.Unavailable, "%w", err)
		}
		return got
	}
	switch {
	case isOwner(s.OwnerReferences[0].UID, &there):
		return nil
	case e.isLeftService(a, &there):
		patch := map[string]any{
			"metadata": map[string]any{"resourceVersion": there.ResourceVersion, "ownerReferences": []metav1.OwnerReference{s.OwnerReferences[0]}, "labels": s.Labels},
			"spec":     map[string]any{"ports": s.Spec.Ports, "selector": mergedSelector(there.Spec.Selector, s.Spec.Selector)},
		}
		return e.k.Patch(ctx, cluster.Services, s.Namespace, s.Name, "", cluster.Merge, patch, nil)
	}
	return &never{engine.LaunchFailed, fault.New(fault.Conflict, "there is a Service %s/%s that is not this job's: the names of its pods would lead there; it is left alone", s.Namespace, s.Name).
		Advise("end the work that has it, or give the Service of the manifest another name")}
}

// mergedSelector is a merge patch by which a selector becomes another: keys that are gone are null.
func mergedSelector(was, want map[string]string) map[string]any {
	out := make(map[string]any, len(was)+len(want))
	for k := range was {
		out[k] = nil
	}
	for k, v := range want {
		out[k] = v
	}
	return out
}

// isLeftService reports whether a Service is of an attempt of this server's that has ended.
func (e *Engine) isLeftService(a *attempt, s *corev1.Service) bool {
	ref, ok := render.RefOf(s)
	if !ok || s.Labels[render.LabelServer] != e.log.server || s.DeletionTimestamp != nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	other := e.attempts[ref]
	return ref != a.ref && (other == nil || other.ended)
}

// readPod reads a pod of an attempt.
func (a *attempt) readPod(i int, p *pod, now time.Time) podstatus.Member {
	if w := a.order.work; w != nil {
		return podstatus.ReadManifest(p.Pod, w.ContainersOf(manifestpod.Tasks(a.order.Claims)[i]), p.serverClock(now))
	}
	return podstatus.Read(p.Pod, a.ref, p.serverClock(now))
}

// manifestBegan is when the pods of a manifest had begun. false: they have not. One that has ended had its chance
// to do harm: the job has begun then, too.
func manifestBegan(members []podstatus.Member) (at time.Time, ok bool) {
	all, some := true, false
	for i := range members {
		m := &members[i]
		all = all && !m.Began.IsZero()
		some = some || m.Over && !m.Began.IsZero()
		if m.Began.After(at) {
			at = m.Began
		}
	}
	return at, all || some
}

// manifestTrouble is what is wrong with a pod of a manifest that lives.
func manifestTrouble(members []podstatus.Member) string {
	for i := range members {
		if m := &members[i]; m.Manifest && !m.Over && m.Why != "" {
			return m.Why
		}
	}
	return ""
}

// judgeManifest ends the pods of a manifest that are left when others have decided the job, or its time is over. It
// returns after which time there is more to do, and whether it has ended them.
func (e *Engine) judgeManifest(a *attempt, members []podstatus.Member, now time.Time) (time.Duration, bool, error) {
	w := a.order.work
	if w == nil {
		return 0, false, nil
	}
	limit := a.order.Job.Spec.TimeLimit
	e.mu.Lock()
	started := a.report.Started
	e.mu.Unlock()
	if v := w.Judge(manifestpod.Tasks(a.order.Claims), members); v.Decided {
		grace := ownGrace
		if limit > 0 && !started.IsZero() {
			grace = min(grace, limit-now.Sub(started))
		}
		e.keepLog(a) // a kubelet that removes a pod at once has no log of it after that
		return 0, true, e.stopWith(a, &stopping{Asked: now.Round(0), Cause: engine.Exited, Grace: max(a.order.Grace, grace), Reason: v.Reason})
	}
	if limit <= 0 || started.IsZero() {
		return 0, false, nil
	}
	if left := limit - now.Sub(started); left > 0 {
		return left, false, nil
	}
	return 0, true, e.stopWith(a, &stopping{Asked: now.Round(0), Cause: engine.TimedOut, Grace: a.order.Grace, Reason: fmt.Sprintf("its time limit of %s has passed", limit)})
}

// ownGrace is how long pods at the most have to end, whatever their templates say, when others have decided their job:
// no longer than its time limit, but for the pool's own grace. They hold their nodes until then.
const ownGrace = 10 * time.Minute

// deleteManifestPods ends the pods of a manifest: their kubelets send the signal that each image names, and wait. As
// a job ends by itself they wait as long as its template says, up to the deadline; else as long as who ends it says.
func (e *Engine) deleteManifestPods(a *attempt, stop *stopping, members []podstatus.Member) (time.Duration, error) {
	w, tasks := a.order.work, manifestpod.Tasks(a.order.Claims)
	err := e.calls.forEach(len(members), func(i int) error {
		if members[i].Over {
			return nil
		}
		grace := max(1, int64((time.Until(stop.killDeadline())+time.Second-1)/time.Second))
		if own := w.Grace(tasks[i].Group); stop.Cause == engine.Exited && own <= grace {
			return e.deletePodWithin(a, i, nil)
		}
		return e.deletePodWithin(a, i, &grace)
	})
	if err != nil {
		return 0, err
	}
	e.mu.Lock()
	a.deleted = stop
	e.mu.Unlock()
	return nextPodCheck(members), nil
}

// endOf is how an attempt ended of which all members are over.
func (a *attempt) endOf(members []podstatus.Member, stop *podstatus.Stop, ran bool) engine.Report {
	if w := a.order.work; w != nil && len(members) == len(a.order.Claims) {
		return w.End(manifestpod.Tasks(a.order.Claims), members, stop, ran)
	}
	return podstatus.End(members, stop, ran)
}

// podReports are the tasks of a manifest, one for each pod. The caller holds the lock.
func (e *Engine) podReports(a *attempt, r *engine.Report, members []podstatus.Member) []engine.TaskReport {
	w := a.order.work
	tasks := manifestpod.Tasks(a.order.Claims)
	var out []engine.TaskReport
	for i := range members {
		m := &members[i]
		if m.Began.IsZero() || len(members) != len(tasks) {
			continue
		}
		t := engine.TaskReport{Rank: i, Node: a.nodeOf(i), Running: !m.Over, Started: m.Began.Round(0), Log: e.logs.fileOfRank(a.ref, i), Name: w.Set.Roles[tasks[i].Group].NameOf(tasks[i].Index)}
		if m.Over {
			t.Ended, t.Cause, t.Exit = r.Ended, cmp.Or(m.Cause, engine.Exited), job.ExitCode{Status: 1}
			if m.Result != nil {
				t.Ended, t.Exit = m.Result.At, m.Result.Exit
			}
			if a.stop != nil && t.Cause == engine.Cancelled {
				t.Cause = engine.Stopped
			}
		}
		out = append(out, t)
	}
	return out
}

// logContainer is the container of pod i whose output is read.
func (a *attempt) logContainer(i int) string {
	if a.order == nil || a.order.work == nil {
		return render.Container
	}
	return a.order.work.LogContainer(manifestpod.Tasks(a.order.Claims)[i].Group)
}
