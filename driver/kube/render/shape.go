package render

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Shape is what pods are beside what their job needs of a node: those of a pool, over which
// goes what a job asks (job.Pod). What the pool does not let a job ask is refused before.
type Shape struct {
	User, Group    *int64 // as whom work runs; nil: as the image or the job's owner has it
	FSGroup        *int64 // the group that volumes are given to where they can be; nil: none
	SharedMemory   int64  // bytes of /dev/shm; 0: what the container runtime gives, usually 64 MiB
	HostNetwork    bool   // the node's network
	LockMemory     bool   // IPC_LOCK, by which root may lock memory beyond the limit
	ServiceAccount string // whose token is there; empty: none
	RuntimeClass   string
	Labels         map[string]string
	Annotations    map[string]string
}

// shapeForJob is the shape of the pods of a job.
func (s Shape) shapeForJob(o *job.Pod) Shape {
	if o == nil {
		return s
	}
	s.SharedMemory = cmp.Or(o.SharedMemory, s.SharedMemory)
	s.HostNetwork, s.LockMemory = s.HostNetwork || o.HostNetwork, s.LockMemory || o.LockMemory
	s.ServiceAccount, s.RuntimeClass = cmp.Or(o.ServiceAccount, s.ServiceAccount), cmp.Or(o.RuntimeClass, s.RuntimeClass)
	s.Labels, s.Annotations = mergeMaps(s.Labels, o.Labels), mergeMaps(s.Annotations, o.Annotations)
	return s
}

// priorityClass is the priority class of the pods of a job; empty: none.
func (a *Attempt) priorityClass() string {
	if o := a.Launch.Job.Spec.Pod; o != nil {
		return cmp.Or(o.PriorityClass, a.PriorityClass)
	}
	return a.PriorityClass
}

// mergeMaps has the second one's values where both have a name.
func mergeMaps(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		return maps.Clone(b)
	}
	maps.Copy(out, b)
	return out
}

// portOf is where a member listens: every pod has a network of its own, but for those on the
// node's, of which those of different attempts have to differ. 0: the crew's.
func (a *Attempt) portOf() int {
	if !a.OnHost() {
		return 0
	}
	return hostPorts + int(a.Launch.Ref.Allocation%10000)
}

// hostPorts begins a range of 10,000 that is below those that a kernel and a cluster give away.
const hostPorts = 20000

// applyShape makes a pod what its pool and its job say.
func (a *Attempt) applyShape(p *corev1.Pod) {
	o := a.Launch.Job.Spec.Pod
	s := a.shapeForJob(o)
	for k, v := range s.Labels {
		if _, ours := p.Labels[k]; !ours {
			p.Labels[k] = v
		}
	}
	p.Annotations = mergeMaps(s.Annotations, p.Annotations) // none goes over those of the gang
	spec, c := &p.Spec, &p.Spec.Containers[0]
	if o != nil {
		if !a.Placed {
			spec.NodeSelector = mergeMaps(o.NodeSelector, spec.NodeSelector) // nor out of the pool
			for _, text := range o.Tolerations {
				t, _ := ParseToleration(text)
				spec.Tolerations = append(spec.Tolerations, t)
			}
		}
	}
	if s.User != nil {
		spec.SecurityContext.RunAsUser, spec.SecurityContext.RunAsGroup, spec.SecurityContext.RunAsNonRoot = s.User, s.Group, nil
		if yes := true; *s.User != 0 {
			spec.SecurityContext.RunAsNonRoot = &yes
		}
	}
	if s.FSGroup != nil {
		once := corev1.FSGroupChangeOnRootMismatch
		spec.SecurityContext.FSGroup, spec.SecurityContext.FSGroupChangePolicy = s.FSGroup, &once
	}
	if s.SharedMemory > 0 {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			Medium: corev1.StorageMediumMemory, SizeLimit: quantity.NewQuantity(s.SharedMemory, quantity.BinarySI),
		}}})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "shm", MountPath: "/dev/shm"})
	}
	if s.LockMemory {
		c.SecurityContext.Capabilities.Add = append(c.SecurityContext.Capabilities.Add, "IPC_LOCK")
	}
	if s.ServiceAccount != "" {
		yes := true
		spec.ServiceAccountName, spec.AutomountServiceAccountToken = s.ServiceAccount, &yes
	}
	if s.RuntimeClass != "" {
		spec.RuntimeClassName = &s.RuntimeClass
	}
	if s.HostNetwork {
		port := int32(cmp.Or(a.portOf(), podagent.Port)) //nolint:gosec // below 65536
		spec.HostNetwork, spec.DNSPolicy = true, corev1.DNSClusterFirstWithHostNet
		c.Env = append(c.Env, corev1.EnvVar{Name: podagent.HereEnv, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}})
		c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: port, HostPort: port}) // a node has room for one such pod of each
	}
}
