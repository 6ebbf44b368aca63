package manifestpod

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// use is a field of a template that reaches beyond its job.
type use struct {
	path  string // in the template
	allow string // what the pool's setting allow has to have; empty: no pool can have it
	why   string // what jobs of the pool may not do
	mend  string // where allow is empty: what to do
}

// checkRights refuses what a group's template asks for beyond its job and the pool does not let it.
func (w *Work) checkRights(a *render.Attempt, group int) error {
	for _, u := range w.uses(a, group) {
		at := w.pathOf(group, "%s", u.path)
		switch {
		case u.allow == "":
			return refuse(fault.Unsupported, u.mend, "%s: %s", at, u.why)
		case !slices.Contains(w.terms.Allow, u.allow):
			return refuse(fault.Permission, fmt.Sprintf("leave it out, or have an administrator add `allow: [%s]` to the pool", u.allow), "%s: jobs of this pool may not %s", at, u.why)
		}
	}
	return nil
}

// uses are the fields of a group's template that reach beyond the job, in the order of the template.
func (w *Work) uses(a *render.Attempt, group int) (out []use) {
	t := w.templates[group]
	add := func(is bool, path, allow, why string) {
		if is {
			out = append(out, use{path: path, allow: allow, why: why})
		}
	}
	never := func(is bool, path, why, mend string) {
		if is {
			out = append(out, use{path: path, why: why, mend: mend})
		}
	}
	r := &w.Set.Roles[group]
	for _, k := range slices.Sorted(maps.Keys(w.withOperators(t.Labels, r.Labels, 0))) {
		never(isOurs(k), "metadata.labels: "+k, "labels of coxswain.sh are set by Coxswain itself", "take another name")
		add(!isPlainMark(k), "metadata.labels: "+k, "labels", "set labels that others in the cluster go by")
	}
	for _, k := range slices.Sorted(maps.Keys(w.withOperators(t.Annotations, r.Annotations, 0))) {
		never(isOurs(k), "metadata.annotations: "+k, "annotations of coxswain.sh are set by Coxswain itself", "take another name")
		add(!isPlainMark(k), "metadata.annotations: "+k, "annotations", "set annotations that others in the cluster go by")
	}
	never(len(t.Finalizers) > 0, "metadata.finalizers", "a pod that waits for somebody else's finalizer never ends", "leave it out")
	never(len(t.OwnerReferences) > 0, "metadata.ownerReferences", "the pods of a job belong to its attempt", "leave it out")

	s := &t.Spec
	add(s.HostNetwork, "spec.hostNetwork", "host_network", "have their node's network")
	add(s.HostPID, "spec.hostPID", "host_pid", "see the processes of their node")
	add(s.HostIPC, "spec.hostIPC", "host_ipc", "share memory with processes of their node")
	account := s.ServiceAccountName
	if account == "" {
		account = s.DeprecatedServiceAccount
	}
	add(account != "" && account != "default" && account != w.terms.Shape.ServiceAccount, "spec.serviceAccountName", "service_account", "act in the cluster as a service account of their choice")
	add(s.AutomountServiceAccountToken != nil && *s.AutomountServiceAccountToken, "spec.automountServiceAccountToken", "service_account", "act in the cluster as a service account")
	add(s.PriorityClassName != "" && s.PriorityClassName != w.terms.PriorityClass, "spec.priorityClassName", "priority_class", "choose the priority class of their pods")
	never(s.Priority != nil, "spec.priority", "the cluster sets the number of a priority class itself", "leave it out, or write priorityClassName")
	add(s.RuntimeClassName != nil && *s.RuntimeClassName != w.terms.Shape.RuntimeClass, "spec.runtimeClassName", "runtime_class", "choose what runs their containers")
	never(len(s.EphemeralContainers) > 0, "spec.ephemeralContainers", "ephemeral containers are added to pods that run", "leave it out")
	never(len(s.SchedulingGates) > 0, "spec.schedulingGates", "nobody would take the gate away", "leave it out")
	never(s.HostnameOverride != nil, "spec.hostnameOverride", "the host names of a gang's pods are those by which they find each other", "leave it out")
	never(len(s.EvictionResponders) > 0, "spec.evictionResponders", "Coxswain ends the pods of a job", "leave it out")
	for i := range s.Containers {
		c := &s.Containers[i]
		never(!w.serves && (c.RestartPolicy != nil || len(c.RestartPolicyRules) > 0), index("spec.containers", i)+".restartPolicy", "the containers of a job are not begun again one by one", "leave it out; retries (backoffLimit) begin all pods of a job anew")
	}
	never(s.SchedulingGroup != nil, "spec.schedulingGroup", "Coxswain makes the gang of a job", "leave it out")
	never(s.Resources != nil, "spec.resources", "resources are counted by the containers that ask for them", "write them at the containers")
	out = append(out, w.placementUses(s)...)
	out = append(out, affinityUses(s.Affinity, w.withOperators(t.Labels, r.Labels, 0))...)
	out = append(out, w.resourceUses(s)...)
	out = append(out, w.volumeUses(s)...)
	out = append(out, w.referenceUses(s)...)
	out = append(out, w.securityUses(a, s)...)
	out = append(out, probeUses(s)...)
	return out
}

// probeUses are those of checks that a kubelet makes of another host than the pod, in whose network it is.
func probeUses(s *corev1.PodSpec) (out []use) {
	ask := func(at, host string) {
		if host != "" {
			out = append(out, use{path: at + ".host", allow: "host_network", why: "have their node ask other hosts"})
		}
	}
	handler := func(at string, http *corev1.HTTPGetAction, tcp *corev1.TCPSocketAction) {
		if http != nil {
			ask(at+".httpGet", http.Host)
		}
		if tcp != nil {
			ask(at+".tcpSocket", tcp.Host)
		}
	}
	eachContainer(s, func(at string, c *corev1.Container) {
		for _, p := range []struct {
			name  string
			probe *corev1.Probe
		}{{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe}} {
			if p.probe != nil {
				handler(at+"."+p.name, p.probe.HTTPGet, p.probe.TCPSocket)
			}
		}
		if c.Lifecycle == nil {
			return
		}
		if h := c.Lifecycle.PostStart; h != nil {
			handler(at+".lifecycle.postStart", h.HTTPGet, h.TCPSocket)
		}
		if h := c.Lifecycle.PreStop; h != nil {
			handler(at+".lifecycle.preStop", h.HTTPGet, h.TCPSocket)
		}
	})
	return out
}

// isOurs reports whether a label or annotation has a name of Coxswain's.
func isOurs(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	return ok && (domain == "coxswain.sh" || strings.HasSuffix(domain, ".coxswain.sh"))
}

// plainDomains are those of labels and annotations that only describe: of applications, of the operators whose
// kinds are read, and of who scrapes and shows pods. Names without a domain describe, too.
var plainDomains = []string{
	"app.kubernetes.io", "helm.sh", "kubectl.kubernetes.io", "prometheus.io", "training.kubeflow.org", "kubeflow.org", "jobset.sigs.k8s.io",
	"batch.kubernetes.io", "batch.volcano.sh", "volcano.sh", "ray.io", "leaderworkerset.sigs.k8s.io", "apps.kubernetes.io", "statefulset.kubernetes.io",
}

// isPlainMark reports whether a label or annotation only describes its pod.
func isPlainMark(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	return !ok || isOurs(key) || slices.Contains(plainDomains, domain)
}

// placementUses are those by which a pod would choose its node.
func (w *Work) placementUses(s *corev1.PodSpec) (out []use) {
	if s.NodeName != "" {
		out = append(out, use{path: "spec.nodeName", why: "Coxswain, or the cluster's scheduler, chooses the nodes", mend: "leave it out, or write nodeSelector with a label that the nodes of the pool have"})
	}
	if s.SchedulerName != "" && s.SchedulerName != "default-scheduler" && s.SchedulerName != w.terms.Scheduler && s.SchedulerName != "volcano" && s.SchedulerName != "kai-scheduler" {
		out = append(out, use{path: "spec.schedulerName", why: "the pool says which scheduler its pods have", mend: "leave it out, or have an administrator set the pool's scheduler"})
	}
	for i := range s.Tolerations {
		at := index("spec.tolerations", i)
		switch t := &s.Tolerations[i]; {
		case t.Key == "":
			out = append(out, use{path: at, why: "without a key it bears the taints of nodes that are kept for other pools, too", mend: "write a toleration for each taint, with its key"})
		case isOurs(t.Key):
			out = append(out, use{path: at, why: "nodes with that taint are kept for a pool", mend: "submit to that pool"})
		case !w.harmless(t):
			out = append(out, use{path: at, allow: "tolerations", why: "bear taints that the pool's own pods do not bear"})
		}
	}
	return out
}

// affinityUses are the terms of pod affinity and anti-affinity that reach the pods of others: the cluster's scheduler
// keeps them away from a node, or is told where they are. Terms of the namespace's pods with a label that the
// template has itself are its own.
func affinityUses(a *corev1.Affinity, labels map[string]string) (out []use) {
	check := func(at string, t *corev1.PodAffinityTerm) {
		if len(t.Namespaces) > 0 || t.NamespaceSelector != nil || !namesOwnLabel(t, labels) {
			out = append(out, use{path: at, allow: "affinity", why: "choose nodes by the pods of others, or keep these from nodes: a term without namespaces, by a label of the template itself, needs nothing"})
		}
	}
	terms := func(at string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			check(index(at+".requiredDuringSchedulingIgnoredDuringExecution", i), &required[i])
		}
		for i := range preferred {
			check(index(at+".preferredDuringSchedulingIgnoredDuringExecution", i)+".podAffinityTerm", &preferred[i].PodAffinityTerm)
		}
	}
	if a == nil {
		return nil
	}
	if p := a.PodAffinity; p != nil {
		terms("spec.affinity.podAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		terms("spec.affinity.podAntiAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return out
}

// namesOwnLabel reports whether a term matches only pods with a label that the template has.
func namesOwnLabel(t *corev1.PodAffinityTerm, labels map[string]string) bool {
	has := func(key, value string) bool {
		v, there := labels[key]
		return there && v == value
	}
	if t.LabelSelector == nil {
		return false
	}
	for k, v := range t.LabelSelector.MatchLabels {
		if has(k, v) {
			return true
		}
	}
	return slices.ContainsFunc(t.LabelSelector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Operator == metav1.LabelSelectorOpIn && len(r.Values) == 1 && has(r.Key, r.Values[0])
	})
}

// harmless reports whether a toleration lets a pod onto no node on which the pool's pods cannot be anyway.
func (w *Work) harmless(t *corev1.Toleration) bool {
	if w.terms.IsGPU(t.Key) || slices.ContainsFunc(w.terms.Tolerate(), func(o corev1.Toleration) bool { return o.MatchToleration(t) }) {
		return true
	}
	if w.terms.Placed && (t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectPreferNoSchedule) {
		return true // a scheduler asks for it, and none has the pod
	}
	// What the cluster gives each pod by itself, if it is for no longer.
	const most = 300
	return (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) && t.TolerationSeconds != nil && *t.TolerationSeconds <= most
}

// resourceUses are those of devices by claims.
func (w *Work) resourceUses(s *corev1.PodSpec) (out []use) {
	if len(s.ResourceClaims) > 0 {
		if w.terms.Placed {
			return []use{{path: "spec.resourceClaims", why: "Coxswain chooses the nodes of this pool, and gives claims of others no devices", mend: "ask for devices by resources.limits, or name a pool of which the cluster's scheduler chooses the nodes"}}
		}
		out = append(out, use{path: "spec.resourceClaims", allow: "resource_claims", why: "use claims of devices that are not of this job"})
	}
	if len(w.terms.Classes) == 0 {
		return out
	}
	eachContainer(s, func(at string, c *corev1.Container) {
		for _, l := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
			for _, name := range slices.Sorted(maps.Keys(l)) {
				if w.terms.IsGPU(string(name)) {
					out = append(out, use{path: at + ".resources: " + string(name), why: "the devices of this pool are claimed by device classes, and its nodes count none", mend: "name a pool whose devices are counted"})
				}
			}
		}
	})
	return out
}

// ownVolumes are the types of volumes that are the pod's own, or whose references are looked at by themselves.
var ownVolumes = []string{"emptyDir", "configMap", "secret", "downwardAPI", "projected", "image"}

// volumeUses are those of volumes.
func (w *Work) volumeUses(s *corev1.PodSpec) (out []use) {
	for i := range s.Volumes {
		v := &s.Volumes[i]
		at := index("spec.volumes", i)
		kind := volumeType(v)
		switch {
		case kind == "", slices.Contains(ownVolumes, kind):
		case kind == "hostPath":
			out = append(out, use{path: at + ".hostPath", allow: "host_path", why: "mount directories of their node"})
		default:
			out = append(out, use{path: at + "." + kind, allow: settings.VolumeAllowance(kind), why: "mount volumes of type " + kind})
		}
		if v.Projected == nil {
			continue
		}
		for k, p := range v.Projected.Sources {
			switch from := index(at+".projected.sources", k); {
			case p.ServiceAccountToken != nil:
				out = append(out, use{path: from + ".serviceAccountToken", allow: "service_account", why: "have the token of a service account"})
			case p.ClusterTrustBundle != nil, p.PodCertificate != nil:
				out = append(out, use{path: from, allow: "service_account", why: "have certificates of the cluster"})
			}
		}
	}
	return out
}

// volumeType is the name of the one field of a volume that is there, as Kubernetes has it; empty: none is.
func volumeType(v *corev1.Volume) string {
	source := reflect.ValueOf(v.VolumeSource)
	for i := range source.NumField() {
		if !source.Field(i).IsNil() {
			name, _, _ := strings.Cut(source.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}

// rootCertificates is a ConfigMap that each namespace has, with nothing that is secret.
const rootCertificates = "kube-root-ca.crt"

// referenceUses are those of Secrets and ConfigMaps that are not of the file.
func (w *Work) referenceUses(s *corev1.PodSpec) (out []use) {
	for _, r := range references(s) {
		switch {
		case w.ofFile(r), !r.secret && *r.name == rootCertificates:
		case r.secret && strings.HasPrefix(r.path, "spec.imagePullSecrets") && slices.Contains(w.terms.PullSecrets, *r.name):
		case r.secret:
			out = append(out, use{path: r.path, allow: "secrets", why: fmt.Sprintf("read Secrets of the namespace (%.70q is not in the file)", *r.name)})
		default:
			out = append(out, use{path: r.path, allow: "config_maps", why: fmt.Sprintf("read ConfigMaps of the namespace (%.70q is not in the file)", *r.name)})
		}
	}
	for i := range s.Volumes {
		if hasSecretRef(&s.Volumes[i]) {
			out = append(out, use{path: index("spec.volumes", i), allow: "secrets", why: "have a volume opened with a Secret of the namespace"})
		}
	}
	return out
}

// hasSecretRef reports whether a volume of the cluster names a Secret.
func hasSecretRef(v *corev1.Volume) bool {
	switch {
	case v.CSI != nil:
		return v.CSI.NodePublishSecretRef != nil
	case v.AzureFile != nil:
		return true
	case v.CephFS != nil:
		return v.CephFS.SecretRef != nil
	case v.Cinder != nil:
		return v.Cinder.SecretRef != nil
	case v.FlexVolume != nil:
		return v.FlexVolume.SecretRef != nil
	case v.ISCSI != nil:
		return v.ISCSI.SecretRef != nil
	case v.RBD != nil:
		return v.RBD.SecretRef != nil
	case v.ScaleIO != nil:
		return true
	case v.StorageOS != nil:
		return v.StorageOS.SecretRef != nil
	}
	return false
}

// index is the path of an element of a list.
func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
