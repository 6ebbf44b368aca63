package inventory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Volumes that only some nodes can have. Every pod of a pool mounts all claims of its paths, so
// what these say of nodes holds for all jobs of a namespace. Where we place, it is read with the
// nodes: from the claim's volume (a local disk, one of a cloud's zone), from its storage class as
// long as it has none, and from access modes, by which one node or one pod has it at a time.

// VolumeTopology is what a claim of the paths says of the nodes on which pods that mount it can be. It is
// not written to once others have it.
type VolumeTopology struct {
	Namespace string                            // its namespace
	Claim     string                            // its name; empty: of each pod's own claim, of a class
	Path      string                            // where it stands
	Volume    string                            // in words: "its volume pv-1", "storage class zonal"
	Region    Region                            // of the volume
	SingleUse corev1.PersistentVolumeAccessMode // ReadWriteOnce, ReadWriteOncePod; empty: several nodes can have it
	ByHand    bool                              // it waits for a volume that nobody makes or chooses, where we place
	open      bool                              // it has no volume yet: whether several nodes can have that is not certain
	absent    bool                              // there is no such claim
	known     time.Time                         // since when it is known and can hardly change; zero: it is asked for again
}

// Region is where a volume can be; of nothing said, anywhere.
type Region struct {
	terms []corev1.NodeSelectorTerm // one of them holds
	zones map[string]string         // labels of volumes from before these had terms; values have "__" between them
}

// readVolumes asks what the claims of the paths say of nodes. Those that are known are not asked for
// again before a while is over. What may not be read says nothing.
func (s *Inventory) readVolumes(ctx context.Context, had []VolumeTopology) (all []VolumeTopology, err error) {
	r := volumeReader{Inventory: s, ctx: ctx}
	for _, ns := range s.terms.Spaces() {
		asked := map[string]bool{}
		for _, p := range s.terms.Paths {
			if p.Volume.Kind != settings.Claim || asked[p.Volume.Name] {
				continue
			}
			asked[p.Volume.Name] = true
			if i := slices.IndexFunc(had, func(t VolumeTopology) bool { return t.Namespace == ns && t.Claim == p.Volume.Name }); i >= 0 && time.Since(had[i].known) < refreshAfter {
				all = append(all, had[i])
				continue
			}
			t, ok, err := r.readClaim(ns, p)
			if err != nil {
				return nil, err
			}
			if ok {
				all = append(all, t)
			}
		}
		for _, p := range s.terms.Paths {
			if p.Volume.Kind != settings.Fresh || !s.terms.Placed {
				continue
			}
			c, err := r.storageClass(p.Volume.Class)
			if err != nil {
				return nil, err
			}
			if c != nil && len(c.AllowedTopologies) > 0 {
				all = append(all, VolumeTopology{Namespace: ns, Path: p.Prefix, Volume: "storage class " + c.Name, Region: classRegion(c)})
			}
		}
	}
	return all, nil
}

// volumeReader asks for what ties are made of, each thing once.
type volumeReader struct {
	*Inventory
	ctx     context.Context //nolint:containedctx // of one look
	classes []storagev1.StorageClass
	listed  bool
}

// unlessUnreadable is an error but of what may not be read, or is not there: that says nothing.
func unlessUnreadable(err error) error {
	switch fault.KindOf(err) {
	case fault.Permission, fault.NotFound, fault.Unsupported:
		return nil
	}
	return err
}

// readClaim reads what a claim says. false: it may not be read.
func (r *volumeReader) readClaim(ns string, p settings.Path) (VolumeTopology, bool, error) {
	var c corev1.PersistentVolumeClaim
	if err := r.cluster.Get(r.ctx, cluster.PersistentVolumeClaims, ns, p.Volume.Name, &c); fault.KindOf(err) == fault.NotFound {
		return VolumeTopology{Namespace: ns, Claim: p.Volume.Name, Path: p.Prefix, absent: true}, true, nil
	} else if err != nil {
		return VolumeTopology{}, false, unlessUnreadable(err)
	}
	t := VolumeTopology{Namespace: ns, Claim: c.Name, Path: p.Prefix, SingleUse: SingleUseMode(c.Spec.AccessModes), open: c.Spec.VolumeName == ""}
	switch {
	case !t.open:
		var v corev1.PersistentVolume
		if err := r.cluster.Get(r.ctx, cluster.PersistentVolumes, "", c.Spec.VolumeName, &v); err != nil {
			return t, true, unlessUnreadable(err)
		}
		if t.SingleUse == corev1.ReadWriteOnce {
			t.SingleUse = attachMode(&v)
		}
		if c.Status.Phase == corev1.ClaimBound {
			t.known = time.Now()
		}
		if r.terms.Placed { // else its scheduler looks at it
			t.Volume, t.Region = "its volume "+v.Name, placeOf(&v)
		}
	case !r.terms.Placed:
	case c.Spec.StorageClassName != nil && *c.Spec.StorageClassName != "":
		class, err := r.storageClass(*c.Spec.StorageClassName)
		if err != nil || class == nil {
			return t, true, err
		}
		t.Volume, t.Region = "its storage class "+class.Name, classRegion(class)
		t.ByHand = class.Provisioner == "kubernetes.io/no-provisioner" && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	}
	return t, true, nil
}

// storageClass is a storage class by its name, or the cluster's default one; nil: there is none, or it
// may not be read.
func (r *volumeReader) storageClass(name string) (*storagev1.StorageClass, error) {
	if !r.listed {
		r.listed = true
		if _, err := cluster.List(r.ctx, r.cluster, cluster.StorageClasses, cluster.Selection{}, func(c *storagev1.StorageClass) error {
			r.classes = append(r.classes, *c)
			return nil
		}); err != nil {
			return nil, unlessUnreadable(err)
		}
	}
	var out *storagev1.StorageClass
	for i := range r.classes {
		c := &r.classes[i]
		if name != "" && c.Name == name || name == "" && c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" && (out == nil || out.CreationTimestamp.Before(&c.CreationTimestamp)) {
			out = c // of several defaults the latest counts
		}
	}
	return out, nil
}

// SingleUseMode is the mode by which one node, or one pod, has a claim at a time; empty: several can.
func SingleUseMode(modes []corev1.PersistentVolumeAccessMode) corev1.PersistentVolumeAccessMode {
	switch {
	case slices.Contains(modes, corev1.ReadWriteMany) || slices.Contains(modes, corev1.ReadOnlyMany):
		return ""
	case slices.Contains(modes, corev1.ReadWriteOnce):
		return corev1.ReadWriteOnce
	case slices.Contains(modes, corev1.ReadWriteOncePod):
		return corev1.ReadWriteOncePod
	}
	return ""
}

// attachMode is the mode by which one node has a volume at a time; empty: several can. Kubernetes keeps
// to it only where volumes are attached to nodes, and by the modes of the volume: one of NFS, or of the
// nodes' own, is mounted wherever it can be. Whether a CSI driver attaches is not asked: it is taken to.
func attachMode(v *corev1.PersistentVolume) corev1.PersistentVolumeAccessMode {
	s := &v.Spec.PersistentVolumeSource
	if s.NFS != nil || s.HostPath != nil || s.Local != nil || s.CephFS != nil || s.AzureFile != nil || s.Glusterfs != nil || s.Quobyte != nil || SingleUseMode(v.Spec.AccessModes) == "" {
		return ""
	}
	return corev1.ReadWriteOnce
}

// placeOf is where a volume can be.
func placeOf(v *corev1.PersistentVolume) (out Region) {
	if a := v.Spec.NodeAffinity; a != nil && a.Required != nil {
		out.terms = a.Required.NodeSelectorTerms
	}
	for _, l := range zoneLabels {
		for _, name := range l {
			if value := v.Labels[name]; value != "" {
				if out.zones == nil {
					out.zones = map[string]string{}
				}
				out.zones[name] = value
			}
		}
	}
	return out
}

// zoneLabels are those by which volumes and nodes say in which zone and region they are, each
// under its name of today and that of before.
var zoneLabels = [][]string{
	{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone},
	{corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion},
}

// classRegion is where a class makes volumes.
func classRegion(c *storagev1.StorageClass) (out Region) {
	for _, t := range c.AllowedTopologies {
		var term corev1.NodeSelectorTerm
		for _, x := range t.MatchLabelExpressions {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: x.Key, Operator: corev1.NodeSelectorOpIn, Values: x.Values})
		}
		out.terms = append(out.terms, term)
	}
	return out
}

// IsUnrestricted reports whether nothing is said.
func (p Region) IsUnrestricted() bool { return len(p.terms) == 0 && len(p.zones) == 0 }

// containsNode reports whether a node is there, as Kubernetes' own scheduler reads it.
func (p Region) containsNode(n *corev1.Node) bool {
	if len(p.terms) > 0 && !slices.ContainsFunc(p.terms, func(t corev1.NodeSelectorTerm) bool { return matchesNodeTerm(&t, n) }) {
		return false
	}
	known := false // a node that says nothing of zones is let be
	for _, names := range zoneLabels {
		known = known || firstOf(n.Labels, names...) != ""
	}
	for _, names := range zoneLabels {
		is := firstOf(n.Labels, names...)
		for _, name := range names {
			if values := p.zones[name]; known && values != "" && !slices.Contains(strings.Split(values, "__"), is) {
				return false
			}
		}
	}
	return true
}

// String is "kubernetes.io/hostname in (n1, n2)".
func (p Region) String() string {
	var terms []string
	for _, t := range p.terms {
		var all []string
		for _, r := range slices.Concat(t.MatchExpressions, t.MatchFields) {
			text := fmt.Sprintf("%s %s", r.Key, strings.ToLower(string(r.Operator)))
			if len(r.Values) > 0 {
				text += " (" + strings.Join(r.Values, ", ") + ")"
			}
			all = append(all, text)
		}
		terms = append(terms, strings.Join(all, " and "))
	}
	out := strings.Join(terms, ", or ")
	for _, names := range zoneLabels {
		for _, name := range names {
			if v := p.zones[name]; v != "" {
				out = strings.TrimPrefix(out+" and "+name+" in ("+strings.ReplaceAll(v, "__", ", ")+")", " and ")
			}
		}
	}
	return out
}

// matchesNodeTerm reports whether a term selects a node. One that says nothing selects none.
func matchesNodeTerm(t *corev1.NodeSelectorTerm, n *corev1.Node) bool {
	if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
		return false
	}
	for _, r := range t.MatchExpressions {
		value, has := n.Labels[r.Key]
		if !matchesRequirement(&r, value, has) {
			return false
		}
	}
	for _, r := range t.MatchFields {
		if !matchesRequirement(&r, n.Name, r.Key == "metadata.name") {
			return false
		}
	}
	return true
}

// matchesRequirement reports whether a label's value is one that is asked for.
func matchesRequirement(r *corev1.NodeSelectorRequirement, value string, has bool) bool {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return has && slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !has || !slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpExists:
		return has
	case corev1.NodeSelectorOpDoesNotExist:
		return !has
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if !has || len(r.Values) != 1 {
			return false
		}
		a, err1 := strconv.ParseInt(value, 10, 64)
		b, err2 := strconv.ParseInt(r.Values[0], 10, 64)
		return err1 == nil && err2 == nil && (r.Operator == corev1.NodeSelectorOpGt && a > b || r.Operator == corev1.NodeSelectorOpLt && a < b)
	}
	return false
}
