package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Name is the claim in words, with what is behind it: "claim home (its volume pv-1)".
func (t *VolumeTopology) Name() string {
	switch {
	case t.Claim == "":
		return t.Volume
	case t.Volume == "":
		return "claim " + t.Claim
	}
	return "claim " + t.Claim + " (" + t.Volume + ")"
}

// unreachableReason says why pods on a node cannot have the claim, wherever others are; empty: they can.
func (t *VolumeTopology) unreachableReason(n *corev1.Node) string {
	if t.Region.IsUnrestricted() || t.Region.containsNode(n) {
		return ""
	}
	return fmt.Sprintf("%s of path %s can only be on nodes with %s", t.Name(), t.Path, t.Region)
}

// InUseReason says why pods on a node cannot have the claim now; empty: they can.
func (t *VolumeTopology) InUseReason(node string, by []ClaimHolder) string {
	for _, h := range by {
		switch {
		case t.SingleUse == corev1.ReadWriteOncePod:
			return t.heldByText(&h)
		case t.SingleUse != "" && h.Node != node && !slices.ContainsFunc(by, func(o ClaimHolder) bool { return o.Node == node }):
			return t.heldByText(&h)
		}
	}
	return ""
}

// heldByText says who has a claim that one has at a time.
func (t *VolumeTopology) heldByText(h *ClaimHolder) string {
	return fmt.Sprintf("claim %s of path %s is for one %s at a time (%s), and pod %s on %s has it", t.Claim, t.Path, oneOf[t.SingleUse], t.SingleUse, h.Pod, h.Node)
}

// Key names it among all of a pool.
func (t *VolumeTopology) Key() string {
	if t.Claim == "" {
		return t.Namespace + "/" + t.Path
	}
	return t.Namespace + "/" + t.Claim
}

// VolumeUnreachable says why pods of a namespace cannot have the volumes of the paths on a node; empty: they
// can, or it is not known.
func (m *Machine) VolumeUnreachable(namespace string) string {
	for _, key := range slices.Sorted(maps.Keys(m.Far)) {
		if strings.HasPrefix(key, namespace+"/") {
			return m.Far[key]
		}
	}
	return ""
}

// markUnreachable marks the nodes on which pods could not have the claims of the paths: with the reason, for
// each namespace; a node that is so for all of them that have their claims takes no work.
func (m *Machine) markUnreachable(spaces []string, n *corev1.Node, ties []VolumeTopology, held map[string][]ClaimHolder) {
	var why []string
	shut, open := 0, 0
	for _, ns := range spaces {
		reason, absent := "", false
		for i := range ties {
			t := &ties[i]
			if t.Namespace != ns {
				continue
			}
			absent = absent || t.absent
			if text := t.unreachableReason(n); text != "" {
				if m.Far == nil {
					m.Far = map[string]string{}
				}
				m.Far[t.Key()] = text
				reason = cmp.Or(reason, text)
			} else if text := t.InUseReason(n.Name, held[t.Key()]); text != "" {
				reason = cmp.Or(reason, text)
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

// VolumesOf are those of a namespace, as of the last look.
func (s *Inventory) VolumesOf(namespace string) (out []VolumeTopology, held map[string][]ClaimHolder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.volumes {
		if s.volumes[i].Namespace == namespace {
			out = append(out, s.volumes[i])
		}
	}
	return out, s.holders
}

// CheckSingleUse refuses a job that may be on several nodes, or has several pods, where one at a time can have
// the claim. one is how to ask for one node.
func (t *VolumeTopology) CheckSingleUse(nodes, pods bool, one string) error {
	switch {
	case t.SingleUse == corev1.ReadWriteOnce && nodes && !t.open, t.SingleUse == corev1.ReadWriteOncePod && nodes:
		return engine.About(fault.New(fault.Invalid, "claim %s, which all pods of the pool have at %s, is for one %s at a time (%s), and the job may be on several nodes", t.Claim, t.Path, oneOf[t.SingleUse], t.SingleUse).
			Advise("%s; or have an administrator give the pool's paths a claim with ReadWriteMany", one), "nodes")
	case t.SingleUse == corev1.ReadWriteOncePod && pods:
		return engine.About(fault.New(fault.Invalid, "claim %s, which all pods of the pool have at %s, is for one pod at a time (%s), and each task of the job is to have one", t.Claim, t.Path, t.SingleUse).
			Advise("leave pods: task out; or have an administrator give the pool's paths a claim with ReadWriteMany"), "kubernetes")
	}
	return nil
}

// ClaimHolder is a pod that has a claim, on a node.
type ClaimHolder struct {
	Pod, Node string
	Ours      bool
}

// addClaimHolders adds to what is known of claims which pod has them: of those of the paths.
func addClaimHolders(t *settings.Terms, sum map[string][]ClaimHolder, p *corev1.Pod, ours bool) {
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
		sum[at] = append(sum[at], ClaimHolder{p.Name, p.Spec.NodeName, ours})
	}
}

// applyVolumeTopologies is markUnreachable for the nodes of a pool that we place. Both lists are of one look.
func applyVolumeTopologies(t *settings.Terms, all []Machine, nodes []corev1.Node, ties []VolumeTopology, held map[string][]ClaimHolder) {
	if len(ties) == 0 || !t.Placed {
		return
	}
	at := make(map[string]*corev1.Node, len(nodes))
	for i := range nodes {
		at[nodes[i].Name] = &nodes[i]
	}
	spaces := t.Spaces()
	for i := range all {
		all[i].markUnreachable(spaces, at[all[i].Node.Name], ties, held)
	}
}

// oneOf is what one has a claim of at a time.
var oneOf = map[corev1.PersistentVolumeAccessMode]string{corev1.ReadWriteOnce: "node", corev1.ReadWriteOncePod: "pod"}
