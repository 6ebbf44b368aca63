package manifestpod

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// Work is the pods of a job as Kubernetes has them.
type Work struct {
	Set       *podspec.Set
	templates []*corev1.PodTemplateSpec // by role
	terms     *settings.Terms
	serves    bool // the pods serve: they are restarted as their templates say
}

// Parse reads the script of a job of kind job.Pods for a pool. fault.Invalid: it is no set, or a template has a
// field that Kubernetes does not know.
func Parse(j *job.Job, script []byte, terms *settings.Terms) (*Work, error) {
	set, err := podspec.ForJob(j, script)
	if err != nil {
		return nil, err
	}
	spec := j.Spec
	w := &Work{Set: set, terms: terms, serves: spec.Serve != nil}
	if len(set.Roles) != len(spec.Groups) {
		return nil, fault.New(fault.Invalid, "the pods of a job: %d roles for %d groups of tasks", len(set.Roles), len(spec.Groups))
	}
	for i := range set.Roles {
		r := &set.Roles[i]
		t, err := decodeTemplate(r)
		if err != nil {
			return nil, err
		}
		if n := spec.Groups[i].Tasks.Want; n != r.Replicas {
			return nil, fault.New(fault.Invalid, "role %s has %d pods, and its group %d tasks", r.Name, r.Replicas, n)
		}
		w.templates = append(w.templates, t)
	}
	return w, nil
}

// Grace is how many seconds the pods of a group have to end by themselves, as their template says.
func (w *Work) Grace(group int) int64 {
	if g := w.templates[group].Spec.TerminationGracePeriodSeconds; g != nil {
		return *g
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

// decodeTemplate reads a role's template. Names of fields are as Kubernetes spells them.
func decodeTemplate(r *podspec.Role) (*corev1.PodTemplateSpec, error) {
	t := new(corev1.PodTemplateSpec)
	strict, err := kjson.UnmarshalStrict(r.Template, t)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return nil, refuse(fault.Invalid, "write the field as kubectl explain pod.spec shows it", "the pod template of %s: %w", r.Name, err)
	}
	return t, nil
}

// refuse is a refusal that is about the pods of a job.
func refuse(kind fault.Kind, advice, format string, args ...any) error {
	return engine.About(fault.New(kind, format, args...).Advise("%s", advice), "pods")
}

// Check refuses what the pods cannot be, wherever they are.
func (w *Work) Check(a *render.Attempt) error {
	s := a.Launch.Job.Spec
	switch {
	case a.Launch.Adds != nil || s.Elastic():
		return engine.About(fault.New(fault.Unsupported, "a gang cannot grow or shrink on Kubernetes").Advise("give a fixed number of pods"), "elastic")
	case s.Upload != nil:
		return engine.About(fault.New(fault.Unsupported, "a directory cannot come with the pods of a manifest: nothing of Coxswain runs in them").
			Advise("leave --upload out, and put the files into the image, a ConfigMap of the same file or a volume"), "upload")
	case s.Pod != nil:
		return engine.About(fault.New(fault.Invalid, "kubernetes: the pods of a manifest are as their templates say").Advise("leave kubernetes out, and write it into the pod template"), "kubernetes")
	case s.Image != "" || s.Container != nil:
		return engine.About(fault.New(fault.Invalid, "the containers of a manifest name their own images").Advise("write the image into the pod template"), "image")
	}
	if err := w.checkServe(s); err != nil {
		return err
	}
	for i := range w.Set.Roles {
		if err := w.checkNames(&w.Set.Roles[i]); err != nil {
			return err
		}
		if err := w.checkRights(a, i); err != nil {
			return err
		}
	}
	if err := w.checkSecrets(s.Secrets); err != nil {
		return err
	}
	return w.checkObjects()
}

// noPort is the name of the port of pods that serve nobody.
const noPort = "none"

// checkServe refuses what cannot be said of pods that serve.
func (w *Work) checkServe(s *job.Spec) error {
	if s.Serve == nil {
		return nil
	}
	for _, p := range s.Serve.Ports {
		if p.Number == 0 && p.Name != noPort {
			return engine.About(fault.New(fault.Invalid, "port %s of a manifest's pods has no number", cmp.Or(p.Name, "of the service")).Advise("write containerPort in the pod template"), "ports")
		}
	}
	return nil
}

// checkNames refuses names of pods that no host can have.
func (w *Work) checkNames(r *podspec.Role) error {
	last := r.NameOf(r.Replicas - 1)
	if wrong := validation.IsDNS1123Label(last); len(wrong) > 0 {
		return refuse(fault.Invalid, "give the workload a shorter or simpler name", "role %s: pods cannot be called %.80q: %s", r.Name, last, settings.Misnamed(wrong))
	}
	if wrong := validation.IsDNS1035Label(r.Subdomain); r.Subdomain != "" && len(wrong) > 0 {
		return refuse(fault.Invalid, "give the Service another name", "role %s: %.80q is no name of a Service: %s", r.Name, r.Subdomain, settings.Misnamed(wrong))
	}
	for name := range r.Files {
		if !path.IsAbs(name) || path.Clean(name) != name {
			return refuse(fault.Invalid, "write its absolute name", "role %s: %.80q is no name of a file in a container", r.Name, name)
		}
	}
	return nil
}

// checkObjects refuses objects of the file that the cluster cannot have.
func (w *Work) checkObjects() error {
	for _, c := range w.Set.ConfigMaps {
		size := 0
		for k, v := range c.Data {
			size += len(k) + len(v)
		}
		for k, v := range c.Binary {
			size += len(k) + len(v)
		}
		if size > corev1.MaxSecretSize {
			return refuse(fault.Invalid, "put large files into the image or on a volume", "ConfigMap %s has %d bytes, and a cluster takes %d", c.Name, size, corev1.MaxSecretSize)
		}
	}
	for _, s := range w.Set.Services {
		if wrong := validation.IsDNS1035Label(s.Name); len(wrong) > 0 {
			return refuse(fault.Invalid, "give the Service another name", "%.80q is no name of a Service: %s", s.Name, settings.Misnamed(wrong))
		}
		if len(s.Ports) == 0 && !s.Headless {
			return refuse(fault.Invalid, "write its ports, or clusterIP: None", "Service %s has no ports", s.Name)
		}
		if s.Role != "" && w.Set.Role(s.Role) == nil {
			return refuse(fault.Invalid, "name a workload of the same file", "Service %s is of role %q, and there is none", s.Name, s.Role)
		}
	}
	return nil
}

// checkSecrets refuses Secrets of the file whose values the job is not given.
func (w *Work) checkSecrets(given []job.Secret) error {
	for _, s := range w.Set.Secrets {
		for _, k := range s.Keys {
			name := podspec.StoreName(s.Name, k)
			if !s.Foreign && !slices.ContainsFunc(given, func(g job.Secret) bool { return g.Name == name }) {
				return refuse(fault.Invalid, "submit the file by cox submit, which keeps the values", "the job is not given secret %s, which Secret %s of the file has as %s", name, s.Name, k)
			}
		}
	}
	return nil
}

// mainContainers are the names of the containers of a group's pods that are the template's own: the end of a pod is
// theirs.
func (w *Work) mainContainers(group int) []string {
	out := make([]string, 0, len(w.templates[group].Spec.Containers))
	for _, c := range w.templates[group].Spec.Containers {
		out = append(out, c.Name)
	}
	return out
}

// LogContainer is the container of a group's pods whose output is the task's: the one that the annotation of
// kubectl names, else the first.
func (w *Work) LogContainer(group int) string {
	t := w.templates[group]
	if name := t.Annotations["kubectl.kubernetes.io/default-container"]; name != "" {
		for _, c := range t.Spec.Containers {
			if c.Name == name {
				return name
			}
		}
	}
	return t.Spec.Containers[0].Name
}

// restarts is how the containers of a group's pods are restarted. Of a gang that serves none is: without one of
// its pods it is no gang, and all begin anew.
func (w *Work) restarts(group int) corev1.RestartPolicy {
	if !w.serves || len(w.Set.Roles) > 1 || w.Set.Roles[0].Replicas > 1 {
		return corev1.RestartPolicyNever
	}
	return cmp.Or(w.templates[group].Spec.RestartPolicy, corev1.RestartPolicyAlways)
}

// pathOf is where a field of a role's template is, for people.
func (w *Work) pathOf(group int, format string, args ...any) string {
	return fmt.Sprintf("pod template of %s: %s", w.Set.Roles[group].Name, strings.TrimPrefix(fmt.Sprintf(format, args...), "."))
}
