package render

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// inPod is the name by which a pod's containers have its claim.
const inPod = "devices"

// Held are the devices that a pod's claim has, in the order of the attempt's claims. nil: it
// has no claim.
func (a *Attempt) Held(i int) (out []Piece) {
	n := &a.Nodes[i]
	for _, c := range a.podClaims(i) {
		for _, d := range c.Devices {
			for k := range min(len(n.Devices), len(n.Pieces)) {
				if n.Devices[k].Index == d.Index && n.Pieces[k] != (Piece{}) {
					out = append(out, n.Pieces[k])
				}
			}
		}
	}
	return out
}

// claimRequests are those of a pod's claim, one for each kind, and of each device the name of its
// request.
func (a *Attempt) claimRequests(i int) (out []resourcev1.DeviceRequest, of []string) {
	var kinds []Piece
	for _, p := range a.Held(i) {
		kind := Piece{Class: p.Class, Where: p.Where}
		k := slices.Index(kinds, kind)
		if k < 0 {
			k, kinds = len(kinds), append(kinds, kind)
			q := &resourcev1.ExactDeviceRequest{DeviceClassName: p.Class, AllocationMode: resourcev1.DeviceAllocationModeExactCount}
			if p.Where != "" {
				q.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: p.Where}}}
			}
			out = append(out, resourcev1.DeviceRequest{Name: "gpu-" + strconv.Itoa(k), Exactly: q})
		}
		out[k].Exactly.Count++
		of = append(of, out[k].Name)
	}
	return out, of
}

// Claims are the attempt's, by the pod: each has the pod's name. nil: a pod has none.
func (a *Attempt) Claims(root types.UID) []*resourcev1.ResourceClaim {
	out := make([]*resourcev1.ResourceClaim, len(a.Nodes))
	for i := range a.Nodes {
		requests, _ := a.claimRequests(i)
		if len(requests) == 0 {
			continue
		}
		c := new(resourcev1.ResourceClaim)
		c.TypeMeta, c.ObjectMeta = a.objectMeta(a.podName(i), "ResourceClaim", root)
		c.APIVersion = resourcev1.SchemeGroupVersion.String()
		c.Labels[LabelIndex] = strconv.Itoa(i)
		c.Finalizers = []string{resourcev1.Finalizer} // it is not gone before its pod has ended: the cluster's controller sees to that
		c.Spec.Devices.Requests = requests
		out[i] = c
	}
	return out
}

// Allocation gives a pod's claim the devices that were chosen for it.
func (a *Attempt) Allocation(i int) *resourcev1.AllocationResult {
	_, of := a.claimRequests(i)
	out := &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{a.Nodes[i].Name}}},
	}}}}
	for k, p := range a.Held(i) {
		out.Devices.Results = append(out.Devices.Results, resourcev1.DeviceRequestAllocationResult{Request: of[k], Driver: p.Driver, Pool: p.Pool, Device: p.Device})
	}
	return out
}

// addPodClaim has a pod name its claim, if there is one, and its job's container use it.
func (a *Attempt) addPodClaim(p *corev1.Pod, i int) {
	if len(a.Held(i)) == 0 {
		return
	}
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: inPod, ResourceClaimName: &p.Name}}
	p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: inPod}}
}
