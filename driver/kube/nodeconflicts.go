package kube

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/kube/inventory"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
)

// nodesFor is on how many nodes a job is at least, and whether it may be on several.
func nodesFor(s *job.Spec) (least int, several bool) {
	several = len(s.Groups) > 1
	for i := range s.Groups {
		g := &s.Groups[i]
		least = max(least, g.Nodes.Min, 1)
		several = several || g.Nodes.Min > 1 || g.Nodes.Max != 1 && max(g.Tasks.Want, g.TasksPerNode) > 1
	}
	return least, several
}

// tasksOf is how many tasks a job has on one node, at least.
func tasksOf(s *job.Spec) (n int) {
	for i := range s.Groups {
		n += max(s.Groups[i].Tasks.Least(), s.Groups[i].TasksPerNode)
	}
	return n
}

// checkVolumes refuses a job that could never have the volumes of the paths, each pod of it all of them.
// What the cluster does not answer is not certain.
func (e *Engine) checkVolumes(ctx context.Context, s *job.Spec, several bool) error {
	if s.Program.Kind == job.Pods || !slices.ContainsFunc(e.cfg.Terms.Paths, func(p settings.Path) bool { return p.Volume.Kind == settings.Claim || p.Volume.Kind == settings.Fresh }) {
		return nil
	}
	ns, _ := e.cfg.Terms.NamespaceOf(s.Account)
	all, err := e.inventory.LastNodes(ctx)
	if err != nil {
		return nil //nolint:nilerr // it is not certain
	}
	var can []string
	for i := range all {
		if all[i].VolumeUnreachable(ns) == "" {
			can = append(can, all[i].Node.Name)
		}
	}
	// Where only one node can have the volumes, no job is on several, whatever it allows.
	apart := several && !(e.cfg.Terms.Placed && len(all) > 0 && len(can) <= 1)
	ties, _ := e.inventory.VolumesOf(ns)
	for i := range ties {
		if err := ties[i].CheckSingleUse(apart, apart || s.PodPerTask() && tasksOf(s) > 1, adviseOneNode(&e.cfg.Terms, s)); err != nil {
			return err
		}
	}
	if !e.cfg.Terms.Placed {
		return nil
	}
	least, _ := nodesFor(s)
	if least <= len(can) || len(can) == len(all) {
		return nil
	}
	var why []string
	for i := range ties {
		if t := &ties[i]; !t.Region.IsUnrestricted() {
			why = append(why, fmt.Sprintf("%s of path %s only on nodes with %s", t.Name(), t.Path, t.Region))
		}
	}
	return engine.About(fault.New(fault.Invalid, "the job asks for %d nodes, and of the pool's %d nodes %d can have its volumes (%s): %s", least, len(all), len(can), cmp.Or(hostlist.Compress(can), "none"), strings.Join(why, "; ")).
		Advise("ask for fewer nodes; or have an administrator put that path on a volume that all nodes can have"), "nodes")
}

// adviseOneNode is how a job asks for one node: the cluster's own scheduler is not told how many the pods of
// tasks have.
func adviseOneNode(t *settings.Terms, s *job.Spec) string {
	if !t.Placed && s.PodPerTask() {
		return "leave pods: task out and ask for one node, as by --nodes=1"
	}
	return "ask for one node, as by --nodes=1"
}

// checkBeforeLaunch looks for claim conflicts and full nodes before anything is reserved for an attempt. What it waited for before others may
// have.
func (e *Engine) checkBeforeLaunch(o *order) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.claimConflict(o)
	if err == nil {
		err = e.podCapacityError(o)
	}
	if t := e.tenants[o.Namespace]; err != nil && t != nil && t.Withdraw(o.Job.ID) {
		e.notifyQuotaRoom(t)
	}
	return err
}

// claimConflict says why an attempt cannot have its claims where it is to be: others have them, elsewhere.
// It is fault.Exhausted: the attempt waits. The caller holds the lock.
func (e *Engine) claimConflict(o *order) error {
	if o.isManifest() { // its pods have none of the pool's paths
		return nil
	}
	ties, held := e.inventory.VolumesOf(o.Namespace)
	for i := range ties {
		t := &ties[i]
		if t.SingleUse == "" {
			continue
		}
		if err := t.CheckSingleUse(slices.ContainsFunc(o.Nodes, func(n render.Node) bool { return n.Name != o.Nodes[0].Name }), len(o.Nodes) > 1, adviseOneNode(&e.cfg.Terms, o.Job.Spec)); err != nil {
			return err
		}
		if !e.cfg.Terms.Placed {
			continue
		}
		by := slices.DeleteFunc(slices.Clone(held[t.Key()]), func(h inventory.ClaimHolder) bool { return h.Ours })
		for _, a := range e.attempts {
			if !a.ended && a.order != nil && a.namespace == t.Namespace && len(a.order.Nodes) > 0 {
				by = append(by, inventory.ClaimHolder{Pod: podName(e, a.ref, 0), Node: a.order.Nodes[0].Name, Ours: true})
			}
		}
		if why := t.InUseReason(o.Nodes[0].Name, by); why != "" {
			e.quotaOf(t.Namespace).AwaitRoom()
			return fault.New(fault.Exhausted, "%s", why)
		}
	}
	return nil
}

// notifyClaimsReleased tells that an attempt gave back claims for which others may wait. The caller holds the
// lock.
func (e *Engine) notifyClaimsReleased(namespace string) {
	ties, _ := e.inventory.VolumesOf(namespace)
	if t := e.tenants[namespace]; t != nil && slices.ContainsFunc(ties, func(t inventory.VolumeTopology) bool { return t.SingleUse != "" }) {
		e.notifyQuotaRoom(t)
	}
}

// A kubelet takes so many pods and no more, whatever else is free on its node, and fails those that
// come after (OutOfpods). The core counts no pods, so they are counted here, before any is made.

// lessTasks is what helps a job with more pods on a node than that takes.
const lessTasks = "fewer tasks on a node, by --ntasks-per-node, or more nodes; or leave pods: task out"

// checkPodCapacity refuses a job of which each task has a pod, if it has more on some node than any of the pool
// takes. What the cluster does not answer is not certain.
func (e *Engine) checkPodCapacity(ctx context.Context, s *job.Spec) error {
	if !s.PodPerTask() {
		return nil
	}
	all, err := e.inventory.LastNodes(ctx)
	if err != nil || len(all) == 0 {
		return nil //nolint:nilerr // it is not certain
	}
	most := 0
	for i := range all {
		n := all[i].PodCapacity()
		if n < 0 {
			return nil
		}
		most = max(most, n)
	}
	for i := range s.Groups {
		if n := tasksPerNode(&s.Groups[i]); n > most {
			return engine.About(fault.New(fault.Invalid, "each task is to have a pod of its own (pods: task), and %d of them are to be on one node: no node of the pool takes more than %d", n, most).
				Advise("ask for %s", lessTasks), "ntasks-per-node", "tasks_per_node", "nodes", "ntasks", "tasks")
		}
	}
	return nil
}

// tasksPerNode is how many tasks of a group are on one node at least, wherever it is placed.
func tasksPerNode(g *job.TaskGroup) int {
	switch {
	case g.Tasks.Want == 0:
		return max(g.TasksPerNode, 1)
	case g.Nodes.Max > 0:
		return (g.Tasks.Least() + g.Nodes.Max - 1) / g.Nodes.Max
	}
	return 1
}

// podCapacityError says why the pods of an attempt have no room on its nodes beside others'. It is
// fault.Exhausted: the attempt waits, and nothing of it is made. The caller holds the lock.
func (e *Engine) podCapacityError(o *order) error {
	if !e.cfg.Terms.Placed {
		return nil
	}
	more := map[string]int{}
	for i := range o.Nodes {
		more[o.Nodes[i].Name]++
	}
	known := e.inventory.KnownNodes()
	for _, name := range slices.Sorted(maps.Keys(more)) {
		i, ok := slices.BinarySearchFunc(known, name, func(m inventory.Machine, name string) int { return strings.Compare(m.Node.Name, name) })
		if !ok {
			continue
		}
		m, n := &known[i], more[name]
		if m.Pods == 0 || m.Others.Pods+e.seated[name]+n <= m.Pods {
			continue
		}
		e.quotaOf(o.Namespace).AwaitPods()
		why := fmt.Sprintf("node %s takes %d pods, %d of others and %d of jobs are there, and the job has %d", name, m.Pods, m.Others.Pods, e.seated[name], n)
		if o.Job.Spec.PodPerTask() && n > m.PodCapacity() {
			return fault.New(fault.Exhausted, "%s, for which it never has room: ask for %s", why, lessTasks)
		}
		return fault.New(fault.Exhausted, "%s", why)
	}
	return nil
}

// countPods counts the pods of an attempt on their nodes, as taken by it or given back. The caller holds the
// lock.
func (e *Engine) countPods(a *attempt, taken bool) {
	if !e.cfg.Terms.Placed || a.order == nil {
		return
	}
	for i := range a.order.Nodes {
		name := a.order.Nodes[i].Name
		if taken {
			e.seated[name]++
		} else if e.seated[name]--; e.seated[name] <= 0 {
			delete(e.seated, name)
		}
	}
}

// notifyPodCapacity tells that pods have ended for whose room others may wait. The caller holds the lock.
func (e *Engine) notifyPodCapacity() {
	for _, t := range e.tenants {
		if t.AwaitsPods() {
			e.notifyQuotaRoom(t)
		}
	}
}
