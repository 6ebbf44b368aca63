package render

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Template makes the pods of a job that brings its own templates (job.Pods), without an agent in them. Its
// methods are functions of what they are given, and safe for concurrent use.
type Template interface {
	// Check refuses what the pool's pods cannot be.
	Check(a *Attempt) error
	// Pod is that of task i.
	Pod(a *Attempt, i int, root types.UID) *corev1.Pod
}

// LabelManifest marks a pod of a template: "true". There is no agent in it, and it ends as its containers do.
const LabelManifest = "coxswain.sh/manifest"

// Frame makes a pod of a template pod i of the attempt: its name, our labels, owner and finalizer, and
// what keeps it from beginning before all pods are there. The pod's own labels and annotations stay, but for
// those of our names.
func (a *Attempt) Frame(p *corev1.Pod, i int, root types.UID) {
	labels, annotations := p.Labels, p.Annotations
	a.markPod(p, i, root)
	p.Labels[LabelManifest] = "true"
	for k, v := range labels {
		if _, ours := p.Labels[k]; !ours {
			p.Labels[k] = v
		}
	}
	p.Annotations = maps.Clone(annotations)
	for k := range a.Shape.Labels {
		if _, said := p.Labels[k]; !said {
			p.Labels[k] = a.Shape.Labels[k]
		}
	}
	for k, v := range a.Shape.Annotations {
		if _, said := p.Annotations[k]; !said {
			p.Annotations = mergeMaps(p.Annotations, map[string]string{k: v})
		}
	}
	a.holdPod(p, root)
	for _, c := range p.Spec.Containers {
		if hasPluginDevice(c.Resources.Limits) {
			p.Labels[LabelPlugged] = "true"
		}
	}
	if s := a.Launch.Job.Spec; s.Serve != nil && i == 0 {
		p.Labels[LabelServes] = "true"
		if name := clientName(s.Part); name != "" {
			p.Labels[LabelService], p.Labels[LabelWhose] = name, hashController(s.Part)
		}
	}
}

// sumRequests is what the containers of some pods ask for together; what only limits say counts.
func sumRequests(pods []*corev1.Pod) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, p := range pods {
		for i := range p.Spec.Containers {
			r := &p.Spec.Containers[i].Resources
			asked := maps.Clone(r.Limits)
			if asked == nil {
				asked = corev1.ResourceList{}
			}
			maps.Copy(asked, r.Requests)
			for name, q := range asked {
				sum := out[name]
				sum.Add(q)
				out[name] = sum
			}
		}
	}
	return out
}

// Object is the metadata of an object of the attempt that belongs to its root.
func (a *Attempt) Object(name, kind string, root types.UID) (metav1.TypeMeta, metav1.ObjectMeta) {
	return a.objectMeta(name, kind, root)
}

// ObjectName is the attempt's name, with which the names of its objects begin.
func (a *Attempt) ObjectName() string { return a.name() }

// PodLabels are those by which all pods of the attempt are selected.
func (a *Attempt) PodLabels() map[string]string { return a.objectLabels() }

// MemberDomain is the domain in which the hosts of the attempt's Service have their names.
func (a *Attempt) MemberDomain() string { return a.memberDomain() }

// PodTolerations are those of the pool and of the devices of pod i.
func (a *Attempt) PodTolerations(i int) []corev1.Toleration { return a.podTolerations(i) }

// TaskOf is the group of pod i's task and its number in the group.
func (a *Attempt) TaskOf(i int) (group, index int) {
	group = a.Launch.Claims[i].Group
	for k := range i {
		if a.Launch.Claims[k].Group == group {
			index++
		}
	}
	return group, index
}

// WhoseLabels are those that the pods of all replicas of a service have. nil: the job is no part of one.
func WhoseLabels(server string, p *job.Part) map[string]string {
	if clientName(p) == "" {
		return nil
	}
	return map[string]string{LabelServer: server, LabelWhose: hashController(p)}
}
