package render

import (
	"cmp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/model/resource"
)

// GangKind is what in a cluster begins the pods of an attempt together.
type GangKind string

// The kinds of gangs.
const (
	Native       GangKind = "native"       // PodGroup of scheduling.k8s.io
	Volcano      GangKind = "volcano"      // PodGroup of scheduling.volcano.sh
	KAI          GangKind = "kai"          // PodGroup of scheduling.run.ai
	Coscheduling GangKind = "coscheduling" // PodGroup of scheduling.x-k8s.io
	Kueue        GangKind = "kueue"        // admits by quota: all or none in quota alone
)

// Near says that the pods of an attempt are to be in one domain of a level of Kueue's Topology.
type Near struct {
	Label  string `json:"label,omitempty"`  // of nodes, by which the level goes; empty: nothing is said
	Wished bool   `json:"wished,omitempty"` // if that can be had; else they do not begin otherwise
}

// Marks by which the kinds know the pods of a gang.
const (
	volcanoGroup      = "scheduling.k8s.io/group-name"  // annotation
	kaiGroup          = "pod-group-name"                // annotation
	kaiQueue          = "kai.scheduler/queue"           // label
	coschedulingGroup = "scheduling.x-k8s.io/pod-group" // label
	kueueQueue        = "kueue.x-k8s.io/queue-name"     // label
	KueueGroup        = "kueue.x-k8s.io/pod-group-name" // label: the name of the Workload, too
	KueueManaged      = "kueue.x-k8s.io/managed"        // finalizer that Kueue puts on its pods
	KueueGate         = "kueue.x-k8s.io/admission"      // gate that Kueue puts on its pods
	kueueCount        = "kueue.x-k8s.io/pod-group-total-count"
	kueueRetriable    = "kueue.x-k8s.io/retriable-in-group"
	kueueIndex        = "kueue.x-k8s.io/pod-group-pod-index-label"
	kueueRequired     = "kueue.x-k8s.io/podset-required-topology"  // annotation: the label of a level
	kueuePreferred    = "kueue.x-k8s.io/podset-preferred-topology" // the same
)

// Root is the annotation of a pod that has no owner: the UID of the root that it belongs to.
const Root = "coxswain.sh/root"

// schedulerName is who chooses the nodes of a gang's pods. Empty: the cluster's default.
func (a *Attempt) schedulerName() string {
	name := map[GangKind]string{Volcano: "volcano", KAI: "kai-scheduler"}[a.Gang]
	return cmp.Or(a.Scheduler, name)
}

// joinGang marks a pod as one of the attempt's gang.
func (a *Attempt) joinGang(p *corev1.Pod, root types.UID) {
	name := a.name()
	note := func(key, value string) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[key] = value
	}
	switch a.Gang {
	case Native:
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	case Volcano:
		note(volcanoGroup, name)
	case KAI:
		note(kaiGroup, name)
		note(Root, string(root))
		p.Labels[kaiQueue] = a.Queue
		p.OwnerReferences = nil // its pod grouper puts pods with an owner into a group of its own making, of one
	case Coscheduling:
		p.Labels[coschedulingGroup] = name
	case Kueue:
		p.Labels[kueueQueue], p.Labels[KueueGroup] = a.Queue, name
		note(kueueCount, strconv.Itoa(len(a.Nodes)))
		note(kueueRetriable, "false") // else it waits for another pod in the place of one that failed
		note(kueueIndex, LabelIndex)
		if a.Near.Label != "" && len(a.Nodes) > 1 {
			key := kueueRequired
			if a.Near.Wished {
				key = kueuePreferred
			}
			note(key, a.Near.Label)
		}
	}
}

// Group is the object by which a gang is told how many pods it has. Its status is what is read
// of those of other makers.
type Group struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              any `json:"spec"`
}

// nativeSpec is that of a PodGroup of scheduling.k8s.io.
type nativeSpec struct {
	SchedulingPolicy struct {
		Gang struct {
			MinCount int `json:"minCount"`
		} `json:"gang"`
	} `json:"schedulingPolicy"`
	DisruptionMode    any    `json:"disruptionMode"` // who makes room for others makes it whole: what is left of a gang is of no use
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// groupDisruption is the DisruptionMode by which a group is disrupted whole or not at all, in a version
// of the API: a word in that of 1.36, a union after. Servers that have it switched off drop it.
func groupDisruption(version string) any {
	if version == "v1alpha2" {
		return "PodGroup"
	}
	return map[string]any{"all": struct{}{}}
}

// groupSpec is that of a PodGroup of Volcano, KAI and coscheduling, of which each has a part.
type groupSpec struct {
	MinMember         int                 `json:"minMember"`
	MinResources      corev1.ResourceList `json:"minResources,omitempty"`
	Queue             string              `json:"queue,omitempty"`
	PriorityClassName string              `json:"priorityClassName,omitempty"`
}

// Group is the attempt's in a version of the API of its kind, without its APIVersion. nil: there
// is no gang, or the cluster makes the object of the pods.
func (a *Attempt) Group(root types.UID, version string) *Group {
	g := new(Group)
	g.TypeMeta, g.ObjectMeta = a.objectMeta(a.name(), "PodGroup", root)
	n := len(a.Nodes)
	switch a.Gang {
	case Native:
		var s nativeSpec
		s.SchedulingPolicy.Gang.MinCount = n
		s.DisruptionMode, s.PriorityClassName = groupDisruption(version), a.priorityClass()
		g.Spec = s
	case Volcano:
		g.Spec = groupSpec{MinMember: n, MinResources: a.totalRequests(), Queue: a.Queue, PriorityClassName: a.priorityClass()}
	case KAI:
		g.Labels[kaiQueue] = a.Queue
		g.Spec = groupSpec{MinMember: n, Queue: a.Queue, PriorityClassName: a.priorityClass()}
	case Coscheduling:
		g.Spec = groupSpec{MinMember: n, MinResources: a.totalRequests()}
	default:
		return nil
	}
	return g
}

// totalRequests is what all pods ask for together.
func (a *Attempt) totalRequests() corev1.ResourceList {
	if a.Template != nil {
		return sumRequests(a.Pods(""))
	}
	var all resource.Vector
	devices := map[string]int{}
	for i := range a.Nodes {
		take, has := a.claimedAmounts(i)
		all = all.Add(take)
		for name, n := range has {
			devices[name] += n
		}
	}
	return resourceRequirements(all, devices).Requests
}
