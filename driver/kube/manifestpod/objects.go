package manifestpod

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// ConfigMaps are those of the file, and one for the operator's files of each role, as objects of an attempt.
func (w *Work) ConfigMaps(a *render.Attempt, root types.UID) (out []*corev1.ConfigMap) {
	add := func(name string, data map[string]string, binary map[string][]byte) {
		yes := true
		c := &corev1.ConfigMap{Data: data, BinaryData: binary, Immutable: &yes}
		c.TypeMeta, c.ObjectMeta = a.Object(objectName(a, name), "ConfigMap", root)
		out = append(out, c)
	}
	for _, c := range w.Set.ConfigMaps {
		add(c.Name, c.Data, c.Binary)
	}
	for g := range w.Set.Roles {
		r := &w.Set.Roles[g]
		names := operatorFiles(r)
		if len(names) == 0 {
			continue
		}
		data := map[string]string{}
		for n, name := range names {
			for i := range r.Replicas {
				data[fileKey(r.Files[name], n, i)] = w.Set.Expand(r.Files[name], i)
			}
		}
		add(filesName(g), data, nil)
	}
	return out
}

// Secrets are those of the file as objects of an attempt, with the values that the server handed over, by
// podspec.StoreName.
func (w *Work) Secrets(a *render.Attempt, root types.UID, values map[string][]byte) (out []*corev1.Secret) {
	for _, s := range w.Set.Secrets {
		if s.Foreign {
			continue
		}
		yes := true
		o := &corev1.Secret{Data: map[string][]byte{}, Immutable: &yes, Type: secretType(s.Keys)}
		o.TypeMeta, o.ObjectMeta = a.Object(objectName(a, s.Name), "Secret", root)
		for _, k := range s.Keys {
			o.Data[k] = values[podspec.StoreName(s.Name, k)]
		}
		out = append(out, o)
	}
	return out
}

// secretType is the type of a Secret with these keys: a registry's login has one of its own, without which no
// kubelet uses it.
func secretType(keys []string) corev1.SecretType {
	if len(keys) == 1 && keys[0] == corev1.DockerConfigJsonKey {
		return corev1.SecretTypeDockerConfigJson
	}
	return corev1.SecretTypeOpaque
}

// Services are those of the set, by their own names, and those in which roles have their names. All pods of one
// service's replicas are behind the same.
func (w *Work) Services(a *render.Attempt, root types.UID) (out []*corev1.Service) {
	all := append([]podspec.Service(nil), w.Set.Services...)
	for i := range w.Set.Roles {
		if name := w.Set.Roles[i].Subdomain; name != "" && !hasService(all, name) {
			all = append(all, podspec.Service{Name: name, Headless: true})
		}
	}
	shared := render.WhoseLabels(a.Server, a.Launch.Job.Spec.Part)
	for i := range all {
		s := &all[i]
		o := new(corev1.Service)
		o.TypeMeta, o.ObjectMeta = a.Object(s.Name, "Service", root)
		o.Spec.Selector = a.PodLabels()
		if shared != nil {
			o.Spec.Selector = maps.Clone(shared)
			o.Labels = maps.Clone(shared)
			o.Labels[render.LabelService] = s.Name
		}
		if s.Role != "" {
			o.Spec.Selector[LabelRole] = w.roleNumber(s.Role)
		}
		if s.Headless {
			o.Spec.ClusterIP = corev1.ClusterIPNone
			o.Spec.PublishNotReadyAddresses = shared == nil // pods of a job look for each other before they are ready
		}
		for _, p := range s.Ports {
			port := corev1.ServicePort{Name: p.Name, Port: int32(p.Port), TargetPort: intstr.FromInt32(int32(p.Port))} //nolint:gosec // the API server refuses what is no port
			if p.Target != "" {
				port.TargetPort = intstr.Parse(p.Target)
			}
			o.Spec.Ports = append(o.Spec.Ports, port)
		}
		out = append(out, o)
	}
	return out
}

func hasService(all []podspec.Service, name string) bool {
	for i := range all {
		if all[i].Name == name {
			return true
		}
	}
	return false
}

// roleNumber is the value of LabelRole.
func (w *Work) roleNumber(name string) string {
	for i := range w.Set.Roles {
		if w.Set.Roles[i].Name == name {
			return strconv.Itoa(i)
		}
	}
	return ""
}

// Shared reports whether the Services of an attempt are those of several: of the replicas of a service.
func Shared(a *render.Attempt) bool {
	return render.WhoseLabels(a.Server, a.Launch.Job.Spec.Part) != nil
}
