package manifestpod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// reference is where a pod names a ConfigMap or Secret.
type reference struct {
	path   string // in the template, such as spec.volumes[0].configMap
	name   *string
	secret bool
}

// references are all ConfigMaps and Secrets that a pod names by the fields that take objects of the file. Those
// of types of volumes that only the cluster knows are foreignSecrets.
func references(s *corev1.PodSpec) (out []reference) {
	for i := range s.Volumes {
		v := &s.Volumes[i]
		at := index("spec.volumes", i)
		switch {
		case v.ConfigMap != nil:
			out = append(out, reference{at + ".configMap.name", &v.ConfigMap.Name, false})
		case v.Secret != nil:
			out = append(out, reference{at + ".secret.secretName", &v.Secret.SecretName, true})
		case v.Projected != nil:
			for k := range v.Projected.Sources {
				p := &v.Projected.Sources[k]
				if p.ConfigMap != nil {
					out = append(out, reference{index(at+".projected.sources", k) + ".configMap.name", &p.ConfigMap.Name, false})
				}
				if p.Secret != nil {
					out = append(out, reference{index(at+".projected.sources", k) + ".secret.name", &p.Secret.Name, true})
				}
			}
		}
	}
	for i := range s.ImagePullSecrets {
		out = append(out, reference{index("spec.imagePullSecrets", i) + ".name", &s.ImagePullSecrets[i].Name, true})
	}
	eachContainer(s, func(at string, c *corev1.Container) {
		for i := range c.EnvFrom {
			e := &c.EnvFrom[i]
			if e.ConfigMapRef != nil {
				out = append(out, reference{index(at+".envFrom", i) + ".configMapRef.name", &e.ConfigMapRef.Name, false})
			}
			if e.SecretRef != nil {
				out = append(out, reference{index(at+".envFrom", i) + ".secretRef.name", &e.SecretRef.Name, true})
			}
		}
		for i := range c.Env {
			from := c.Env[i].ValueFrom
			if from == nil {
				continue
			}
			if from.ConfigMapKeyRef != nil {
				out = append(out, reference{index(at+".env", i) + ".valueFrom.configMapKeyRef.name", &from.ConfigMapKeyRef.Name, false})
			}
			if from.SecretKeyRef != nil {
				out = append(out, reference{index(at+".env", i) + ".valueFrom.secretKeyRef.name", &from.SecretKeyRef.Name, true})
			}
		}
	})
	return out
}

// eachContainer calls f for each container of a pod, with its path.
func eachContainer(s *corev1.PodSpec, f func(at string, c *corev1.Container)) {
	for i := range s.InitContainers {
		f(index("spec.initContainers", i), &s.InitContainers[i])
	}
	for i := range s.Containers {
		f(index("spec.containers", i), &s.Containers[i])
	}
}

// ofFile reports whether an object that a pod names stands in the file.
func (w *Work) ofFile(r reference) bool {
	if !r.secret {
		return (*r.name)[:min(1, len(*r.name))] == "_" || slices.ContainsFunc(w.Set.ConfigMaps, func(c podspec.ConfigMap) bool { return c.Name == *r.name })
	}
	return slices.ContainsFunc(w.Set.Secrets, func(s podspec.Secret) bool { return s.Name == *r.name && !s.Foreign })
}

// renameReferences has a pod name the attempt's own objects in place of those of the file.
func (w *Work) renameReferences(a *render.Attempt, s *corev1.PodSpec) {
	for _, r := range references(s) {
		if w.ofFile(r) {
			*r.name = objectName(a, *r.name)
		}
	}
}
