package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// A kubelet takes so many pods and no more, whatever else is free on its node, and fails those that
// come after (OutOfpods). The core counts no pods, so they are counted here, before any is made.

// podCapacity is how many pods of jobs a node has room for beside those of DaemonSets; -1: it does not
// say.
func (m *Machine) podCapacity() int {
	if m.Pods == 0 {
		return -1
	}
	return max(0, m.Pods-m.Others.Daemons)
}

// lessTasks is what helps a job with more pods on a node than that takes.
const lessTasks = "fewer tasks on a node, by --ntasks-per-node, or more nodes; or leave pods: task out"

// checkPodCapacity refuses a job of which each task has a pod, if it has more on some node than any of the pool
// takes. What the cluster does not answer is not certain.
func (e *Engine) checkPodCapacity(ctx context.Context, s *job.Spec) error {
	if !s.PodPerTask() {
		return nil
	}
	all, err := e.lastNodes(ctx)
	if err != nil || len(all) == 0 {
		return nil //nolint:nilerr // it is not certain
	}
	most := 0
	for i := range all {
		n := all[i].podCapacity()
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
	e.Survey.mu.Lock()
	defer e.Survey.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(more)) {
		i, ok := slices.BinarySearchFunc(e.machines, name, func(m Machine, name string) int { return strings.Compare(m.Node.Name, name) })
		if !ok {
			continue
		}
		m, n := &e.machines[i], more[name]
		if m.Pods == 0 || m.Others.Pods+e.seated[name]+n <= m.Pods {
			continue
		}
		e.quotaOf(o.Namespace).AwaitPods()
		why := fmt.Sprintf("node %s takes %d pods, %d of others and %d of jobs are there, and the job has %d", name, m.Pods, m.Others.Pods, e.seated[name], n)
		if o.Job.Spec.PodPerTask() && n > m.podCapacity() {
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
