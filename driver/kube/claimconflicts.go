package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
)

// holder is a pod that has a claim, on a node.
type holder struct {
	pod, node string
	ours      bool
}

// addClaimHolders adds to what is known of claims which pod has them: of those of the paths.
func addClaimHolders(t *settings.Terms, sum map[string][]holder, p *corev1.Pod, ours bool) {
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil || !slices.ContainsFunc(t.Paths, func(x settings.Path) bool {
			return x.Volume.Kind == settings.Claim && x.Volume.Name == v.PersistentVolumeClaim.ClaimName
		}) {
			continue
		}
		at := p.Namespace + "/" + v.PersistentVolumeClaim.ClaimName
		sum[at] = append(sum[at], holder{p.Name, p.Spec.NodeName, ours})
	}
}

// name is the claim in words, with what is behind it: "claim home (its volume pv-1)".
func (t *tie) name() string {
	switch {
	case t.claim == "":
		return t.volume
	case t.volume == "":
		return "claim " + t.claim
	}
	return "claim " + t.claim + " (" + t.volume + ")"
}

// unreachableReason says why pods on a node cannot have the claim, wherever others are; empty: they can.
func (t *tie) unreachableReason(n *corev1.Node) string {
	if t.where.isUnrestricted() || t.where.containsNode(n) {
		return ""
	}
	return fmt.Sprintf("%s of path %s can only be on nodes with %s", t.name(), t.path, t.where)
}

// inUseReason says why pods on a node cannot have the claim now; empty: they can.
func (t *tie) inUseReason(node string, by []holder) string {
	for _, h := range by {
		switch {
		case t.once == corev1.ReadWriteOncePod:
			return t.heldByText(&h)
		case t.once != "" && h.node != node && !slices.ContainsFunc(by, func(o holder) bool { return o.node == node }):
			return t.heldByText(&h)
		}
	}
	return ""
}

// heldByText says who has a claim that one has at a time.
func (t *tie) heldByText(h *holder) string {
	return fmt.Sprintf("claim %s of path %s is for one %s at a time (%s), and pod %s on %s has it", t.claim, t.path, oneOf[t.once], t.once, h.pod, h.node)
}

// key names it among all of a pool.
func (t *tie) key() string {
	if t.claim == "" {
		return t.space + "/" + t.path
	}
	return t.space + "/" + t.claim
}

// volumeUnreachable says why pods of a namespace cannot have the volumes of the paths on a node; empty: they
// can, or it is not known.
func (m *Machine) volumeUnreachable(namespace string) string {
	for _, key := range slices.Sorted(maps.Keys(m.Far)) {
		if strings.HasPrefix(key, namespace+"/") {
			return m.Far[key]
		}
	}
	return ""
}

// applyVolumeTies marks the nodes on which pods could not have the claims of the paths: with the reason, for
// each namespace; a node that is so for all of them that have their claims takes no work.
func (m *Machine) applyVolumeTies(spaces []string, n *corev1.Node, ties []tie, held map[string][]holder) {
	var why []string
	shut, open := 0, 0
	for _, ns := range spaces {
		reason, absent := "", false
		for i := range ties {
			t := &ties[i]
			if t.space != ns {
				continue
			}
			absent = absent || t.absent
			if text := t.unreachableReason(n); text != "" {
				if m.Far == nil {
					m.Far = map[string]string{}
				}
				m.Far[t.key()] = text
				reason = orDefault(reason, text)
			} else if text := t.inUseReason(n.Name, held[t.key()]); text != "" {
				reason = orDefault(reason, text)
			}
		}
		if absent { // no pod of it can be there, on any node
			continue
		}
		if reason == "" {
			open++
			continue
		}
		if shut++; !slices.Contains(why, reason) {
			why = append(why, reason)
		}
	}
	if open > 0 || shut == 0 {
		return
	}
	if m.Node.State == fleet.Up {
		m.Node.State = fleet.Draining
	} else {
		why = append([]string{m.Node.Why}, why...)
	}
	m.Node.Why = strings.Join(why, "; ")
}

// applyAllVolumeTies is applyVolumeTies for the nodes of a pool that we place. Both lists are of one look.
func applyAllVolumeTies(t *settings.Terms, all []Machine, nodes []corev1.Node, ties []tie, held map[string][]holder) {
	if len(ties) == 0 || !t.Placed {
		return
	}
	at := make(map[string]*corev1.Node, len(nodes))
	for i := range nodes {
		at[nodes[i].Name] = &nodes[i]
	}
	spaces := t.Spaces()
	for i := range all {
		all[i].applyVolumeTies(spaces, at[all[i].Node.Name], ties, held)
	}
}

// tiesOf are those of a namespace, as of the last look.
func (s *Survey) tiesOf(namespace string) (out []tie, held map[string][]holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.ties {
		if s.ties[i].space == namespace {
			out = append(out, s.ties[i])
		}
	}
	return out, s.held
}

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
	if !slices.ContainsFunc(e.cfg.Terms.Paths, func(p settings.Path) bool { return p.Volume.Kind == settings.Claim || p.Volume.Kind == settings.Fresh }) {
		return nil
	}
	ns, _ := e.cfg.Terms.NamespaceOf(s.Account)
	all, err := e.lastNodes(ctx)
	if err != nil {
		return nil //nolint:nilerr // it is not certain
	}
	var can []string
	for i := range all {
		if all[i].volumeUnreachable(ns) == "" {
			can = append(can, all[i].Node.Name)
		}
	}
	// Where only one node can have the volumes, no job is on several, whatever it allows.
	apart := several && !(e.cfg.Terms.Placed && len(all) > 0 && len(can) <= 1)
	ties, _ := e.tiesOf(ns)
	for i := range ties {
		if err := ties[i].checkSingleUse(apart, apart || s.PodPerTask() && tasksOf(s) > 1, adviseOneNode(&e.cfg.Terms, s)); err != nil {
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
		if t := &ties[i]; !t.where.isUnrestricted() {
			why = append(why, fmt.Sprintf("%s of path %s only on nodes with %s", t.name(), t.path, t.where))
		}
	}
	return engine.About(fault.New(fault.Invalid, "the job asks for %d nodes, and of the pool's %d nodes %d can have its volumes (%s): %s", least, len(all), len(can), orDefault(hostlist.Compress(can), "none"), strings.Join(why, "; ")).
		Advise("ask for fewer nodes; or have an administrator put that path on a volume that all nodes can have"), "nodes")
}

// checkSingleUse refuses a job that may be on several nodes, or has several pods, where one at a time can have
// the claim. one is how to ask for one node.
func (t *tie) checkSingleUse(nodes, pods bool, one string) error {
	switch {
	case t.once == corev1.ReadWriteOnce && nodes && !t.open, t.once == corev1.ReadWriteOncePod && nodes:
		return engine.About(fault.New(fault.Invalid, "claim %s, which all pods of the pool have at %s, is for one %s at a time (%s), and the job may be on several nodes", t.claim, t.path, oneOf[t.once], t.once).
			Advise("%s; or have an administrator give the pool's paths a claim with ReadWriteMany", one), "nodes")
	case t.once == corev1.ReadWriteOncePod && pods:
		return engine.About(fault.New(fault.Invalid, "claim %s, which all pods of the pool have at %s, is for one pod at a time (%s), and each task of the job is to have one", t.claim, t.path, t.once).
			Advise("leave pods: task out; or have an administrator give the pool's paths a claim with ReadWriteMany"), "kubernetes")
	}
	return nil
}

// adviseOneNode is how a job asks for one node: the cluster's own scheduler is not told how many the pods of
// tasks have.
func adviseOneNode(t *settings.Terms, s *job.Spec) string {
	if !t.Placed && s.PodPerTask() {
		return "leave pods: task out and ask for one node, as by --nodes=1"
	}
	return "ask for one node, as by --nodes=1"
}

// oneOf is what one has a claim of at a time.
var oneOf = map[corev1.PersistentVolumeAccessMode]string{corev1.ReadWriteOnce: "node", corev1.ReadWriteOncePod: "pod"}

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
	ties, held := e.tiesOf(o.Namespace)
	for i := range ties {
		t := &ties[i]
		if t.once == "" {
			continue
		}
		if err := t.checkSingleUse(slices.ContainsFunc(o.Nodes, func(n render.Node) bool { return n.Name != o.Nodes[0].Name }), len(o.Nodes) > 1, adviseOneNode(&e.cfg.Terms, o.Job.Spec)); err != nil {
			return err
		}
		if !e.cfg.Terms.Placed {
			continue
		}
		by := slices.DeleteFunc(slices.Clone(held[t.key()]), func(h holder) bool { return h.ours })
		for _, a := range e.attempts {
			if !a.ended && a.order != nil && a.namespace == t.space && len(a.order.Nodes) > 0 {
				by = append(by, holder{podName(e, a.ref, 0), a.order.Nodes[0].Name, true})
			}
		}
		if why := t.inUseReason(o.Nodes[0].Name, by); why != "" {
			e.quotaOf(t.space).AwaitRoom()
			return fault.New(fault.Exhausted, "%s", why)
		}
	}
	return nil
}

// notifyClaimsReleased tells that an attempt gave back claims for which others may wait. The caller holds the
// lock.
func (e *Engine) notifyClaimsReleased(namespace string) {
	ties, _ := e.tiesOf(namespace)
	if t := e.tenants[namespace]; t != nil && slices.ContainsFunc(ties, func(t tie) bool { return t.once != "" }) {
		e.notifyQuotaRoom(t)
	}
}
