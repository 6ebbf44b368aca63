package inventory

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	amount "github.com/coxswain-sched/coxswain/model/resource"
)

// Use is what pods hold of a node by their requests, which is what a scheduler counts.
type Use struct {
	Pods    int
	Daemons int // of the pods: those of DaemonSets, which come back wherever they are ended
	Take    amount.Vector
	Devices map[string]int // GPUs and their parts, by the resource's name
}

type nodeUsage struct{ others, ours Use }

// addPodUse adds what a pod holds to what pods hold, by node. One that has ended, or has no node,
// holds nothing; one that is being deleted holds what it has until its object is gone.
func addPodUse(t *settings.Terms, sum map[string]nodeUsage, p *corev1.Pod, ours func(*corev1.Pod) bool) {
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	u := sum[p.Spec.NodeName]
	if ours != nil && ours(p) {
		u.ours.add(t, p)
	} else {
		u.others.add(t, p)
	}
	sum[p.Spec.NodeName] = u
}

func (u *Use) add(t *settings.Terms, p *corev1.Pod) {
	u.Pods++
	for _, o := range p.OwnerReferences {
		if o.Kind == "DaemonSet" {
			u.Daemons++
			break
		}
	}
	var v amount.Vector
	for name, n := range Requests(p) {
		switch r := string(name); {
		case name == corev1.ResourceCPU:
			v.CPU = amount.Amount(n)
		case name == corev1.ResourceMemory:
			v.Memory = amount.Amount(n)
		case name == corev1.ResourceEphemeralStorage:
			v.Disk = amount.Amount(n)
		case isDeviceResource(t, r):
			if u.Devices == nil {
				u.Devices = map[string]int{}
			}
			u.Devices[r] += int(n)
		default:
			v = v.With(Named(r), amount.Amount(n))
		}
	}
	u.Take = u.Take.Add(v)
}

// isDeviceResource reports whether the units of a resource are devices of a node.
func isDeviceResource(t *settings.Terms, name string) bool { return t.IsGPU(name) || isMIG(name) }

// Requests is what a pod asks for, as the scheduler counts it: its containers together, with
// the initial ones that stay; or what the initial ones need before, if that is more; or what
// the pod says of itself. And its overhead. CPU is in thousandths.
func Requests(p *corev1.Pod) map[corev1.ResourceName]int64 {
	run, begin, stay := map[corev1.ResourceName]int64{}, map[corev1.ResourceName]int64{}, map[corev1.ResourceName]int64{}
	for i := range p.Spec.Containers {
		addRequests(run, p.Spec.Containers[i].Resources.Requests)
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			addRequests(run, c.Resources.Requests)
			addRequests(stay, c.Resources.Requests)
			raiseToMax(begin, stay)
			continue
		}
		need := map[corev1.ResourceName]int64{}
		for name, n := range stay {
			need[name] = n
		}
		addRequests(need, c.Resources.Requests)
		raiseToMax(begin, need)
	}
	raiseToMax(run, begin)
	if p.Spec.Resources != nil {
		for name, q := range p.Spec.Resources.Requests {
			run[name] = requestUnits(name, q.MilliValue(), q.Value())
		}
	}
	addRequests(run, p.Spec.Overhead)
	return run
}

func addRequests(sum map[corev1.ResourceName]int64, l corev1.ResourceList) {
	for name, q := range l {
		sum[name] += requestUnits(name, q.MilliValue(), q.Value())
	}
}

func raiseToMax(a, b map[corev1.ResourceName]int64) {
	for name, n := range b {
		a[name] = max(a[name], n)
	}
}

func requestUnits(name corev1.ResourceName, thousandths, whole int64) int64 {
	if name == corev1.ResourceCPU {
		return thousandths
	}
	return whole
}
