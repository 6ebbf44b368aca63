package manifestpod

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// LabelRole marks pods with the number of their role, by which Services select them.
const LabelRole = "coxswain.sh/role"

// deadlineSlack is how much longer than its job's time limit a kubelet lets a pod live: the limit counts from when
// all pods run, and a kubelet counts from when it has taken the pod.
const deadlineSlack = 30 * time.Minute

// Pod is the pod of task i.
func (w *Work) Pod(a *render.Attempt, i int, root types.UID) *corev1.Pod {
	group, index := a.TaskOf(i)
	r, t := &w.Set.Roles[group], w.templates[group]
	p := &corev1.Pod{Spec: *t.Spec.DeepCopy()}
	p.Labels, p.Annotations = w.withOperators(t.Labels, r.Labels, index), w.withOperators(t.Annotations, r.Annotations, index)
	s := &p.Spec
	s.NodeName = ""
	s.RestartPolicy = w.restarts(group)
	w.nameHost(a, s, r, index)
	w.limitTime(a, s)
	w.settleRights(a, s)
	for _, tol := range a.PodTolerations(i) {
		if !slices.Contains(s.Tolerations, tol) {
			s.Tolerations = append(s.Tolerations, tol)
		}
	}
	w.addOperators(s, r, group, index)
	nameItself(p, r.NameOf(index))
	w.renameReferences(a, s)
	a.Frame(p, i, root)
	p.Labels[LabelRole] = strconv.Itoa(group)
	return p
}

// nameHost gives a pod its host name, and the names of the others a domain in which they are looked for.
func (w *Work) nameHost(a *render.Attempt, s *corev1.PodSpec, r *podspec.Role, index int) {
	s.Hostname, s.Subdomain = r.NameOf(index), r.Subdomain
	if s.Subdomain == "" {
		s.Subdomain = a.ObjectName()
	}
	if s.DNSConfig == nil {
		s.DNSConfig = new(corev1.PodDNSConfig)
	}
	for _, domain := range w.domains(a) {
		if !slices.Contains(s.DNSConfig.Searches, domain) {
			s.DNSConfig.Searches = append(s.DNSConfig.Searches, domain)
		}
	}
}

// domains are those in which the names of the pods are: of the attempt's own Service, and of those of the set.
func (w *Work) domains(a *render.Attempt) (out []string) {
	if w.NeedsService() {
		out = append(out, a.MemberDomain())
	}
	for i := range w.Set.Roles {
		if name := w.Set.Roles[i].Subdomain; name != "" {
			if d := name + a.MemberDomain()[len(a.ObjectName()):]; !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

// NeedsService reports whether pods have their names by a Service of the attempt's own: those of roles without
// a Service of the set.
func (w *Work) NeedsService() bool {
	return slices.ContainsFunc(w.Set.Roles, func(r podspec.Role) bool { return r.Subdomain == "" })
}

// limitTime has the kubelet end a pod that outlives its job's time limit by far, as when nobody is there to end it.
func (w *Work) limitTime(a *render.Attempt, s *corev1.PodSpec) {
	limit := a.Launch.Job.Spec.TimeLimit
	if limit <= 0 {
		return
	}
	seconds := int64((limit + a.Ready + deadlineSlack) / time.Second)
	if s.ActiveDeadlineSeconds == nil || *s.ActiveDeadlineSeconds > seconds {
		s.ActiveDeadlineSeconds = &seconds
	}
}

// addOperators adds what the kind's operator gives each container, init containers too: variables, which replace none, and files.
func (w *Work) addOperators(s *corev1.PodSpec, r *podspec.Role, group, index int) {
	const volume = "cox-files"
	files := operatorFiles(r)
	if len(files) > 0 {
		mode := int32(0o555)
		s.Volumes = append(s.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: filesName(group)}, DefaultMode: &mode,
		}}})
	}
	eachContainer(s, func(_ string, c *corev1.Container) {
		for _, v := range r.Env {
			if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == v.Name }) {
				c.Env = append(c.Env, corev1.EnvVar{Name: v.Name, Value: w.Set.Expand(v.Value, index)})
			}
		}
		for n, name := range files {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: name, SubPath: fileKey(r.Files[name], n, index), ReadOnly: true})
		}
	})
}

// annotationName has the name that the kind gives a pod, where files of the pod ask for it.
const annotationName = "coxswain.sh/pod-name"

// nameItself gives containers and files that ask for their pod's name the one that the kind gives it. The object of the
// pod has another, which no other attempt has.
func nameItself(p *corev1.Pod, name string) {
	nameFiles := func(items []corev1.DownwardAPIVolumeFile) {
		for i := range items {
			if f := items[i].FieldRef; f != nil && f.FieldPath == "metadata.name" {
				f.FieldPath = "metadata.annotations['" + annotationName + "']"
				p.Annotations[annotationName] = name
			}
		}
	}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.DownwardAPI != nil {
			nameFiles(v.DownwardAPI.Items)
		}
		if v.Projected == nil {
			continue
		}
		for k := range v.Projected.Sources {
			if d := v.Projected.Sources[k].DownwardAPI; d != nil {
				nameFiles(d.Items)
			}
		}
	}
	eachContainer(&p.Spec, func(_ string, c *corev1.Container) {
		for i := range c.Env {
			if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.name" {
				c.Env[i].Value, c.Env[i].ValueFrom = name, nil
			}
		}
	})
}

// operatorFiles are the names of a role's files, in order.
func operatorFiles(r *podspec.Role) []string { return slices.Sorted(maps.Keys(r.Files)) }

// fileKey is the key of the n-th file of a role in its ConfigMap. One whose text differs from pod to pod is there
// for each.
func fileKey(text string, n, index int) string {
	key := "file-" + strconv.Itoa(n)
	if strings.Contains(text, "{i}") || strings.Contains(text, "{i+1}") {
		key += "-" + strconv.Itoa(index)
	}
	return key
}

// withOperators are labels or annotations of a template, and those of the operator that it does not have.
func (w *Work) withOperators(written, added map[string]string, index int) map[string]string {
	out := maps.Clone(written)
	if out == nil {
		out = map[string]string{}
	}
	for k, v := range added {
		if _, there := out[k]; !there {
			out[k] = w.Set.Expand(v, index)
		}
	}
	return out
}

// filesName is the name of the ConfigMap of a role's files as if it stood in the set: no ConfigMap of a file
// has an underscore.
func filesName(group int) string { return "_files-" + strconv.Itoa(group) }

// objectName is the name in the cluster of an object of the file.
func objectName(a *render.Attempt, name string) string {
	if name != "" && name[0] == '_' {
		name = name[1:]
		return fmt.Sprintf("%s.%s", a.ObjectName(), name)
	}
	return a.ObjectName() + "-" + name
}
