package settings

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// FieldAllowances are the fields of a job's kubernetes block that a job may use only where its pool says so, since
// they reach beyond the job, in the order of usedPodFields.
func FieldAllowances() []string {
	return []string{"host_network", "lock_memory", "service_account", "runtime_class", "priority_class", "labels", "annotations", "tolerations"}
}

// templateAllowances are what only the pod templates of manifests can ask for.
var templateAllowances = []string{"secrets", "config_maps", "host_path", "host_pid", "host_ipc", "host_ports", "privileged", "run_as_user", "resource_claims", "affinity"}

// volumeTypes are the types of volumes of pod templates that reach beyond the job, as Kubernetes names them.
// hostPath is not among them: it is host_path.
var volumeTypes = []string{
	"awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "ephemeral", "fc", "flexVolume", "flocker", "gcePersistentDisk",
	"gitRepo", "glusterfs", "iscsi", "nfs", "persistentVolumeClaim", "photonPersistentDisk", "portworxVolume", "quobyte", "rbd", "scaleIO",
	"storageos", "vsphereVolume",
}

// VolumeAllowance is what the setting allow has to have for volumes of a type.
func VolumeAllowance(kind string) string { return "volume/" + kind }

// Allowances are what the setting allow may have: fields of a job's kubernetes block, and of the pod templates of
// manifests, that a job may use only where its pool says so, since they reach beyond the job.
func Allowances() []string {
	out := slices.Concat(FieldAllowances(), templateAllowances)
	for _, kind := range volumeTypes {
		out = append(out, VolumeAllowance(kind))
	}
	return out
}

// usedPodFields are the fields that a job uses.
func usedPodFields(p *job.Pod) (out []string) {
	for i, is := range []bool{p.HostNetwork, p.LockMemory, p.ServiceAccount != "", p.RuntimeClass != "", p.PriorityClass != "", len(p.Labels) > 0, len(p.Annotations) > 0, len(p.Tolerations) > 0} {
		if is {
			out = append(out, FieldAllowances()[i])
		}
	}
	return out
}

// CheckPodFields refuses what a job asks of its pods and the pool does not let it, or what no cluster
// takes.
func (t *Terms) CheckPodFields(p *job.Pod) error {
	if p == nil {
		return nil
	}
	refuse := func(kind fault.Kind, mend, format string, args ...any) error {
		return engine.About(fault.New(kind, "kubernetes: "+format, args...).Advise("%s", mend), "kubernetes")
	}
	for _, f := range usedPodFields(p) {
		if !slices.Contains(t.Allow, f) {
			return refuse(fault.Permission, "leave it out, or have an administrator add it to the pool's setting allow", "%s: jobs of this pool may not ask for it", f)
		}
	}
	if t.Placed && len(p.NodeSelector) > 0 {
		return refuse(fault.Unsupported, "write constraint, with labels that the pool's setting features names", "node_selector: Coxswain chooses the nodes of this pool")
	}
	if t.Placed && len(p.Tolerations) > 0 {
		return refuse(fault.Unsupported, "have an administrator add them to the pool's setting tolerations", "tolerations: Coxswain chooses the nodes of this pool, by what all its pods bear")
	}
	for _, text := range p.Tolerations {
		if _, err := render.ParseToleration(text); err != nil {
			return refuse(fault.Invalid, fault.Remedy(err), "tolerations: %w", err)
		}
	}
	for _, x := range []struct{ field, name string }{{"service_account", p.ServiceAccount}, {"runtime_class", p.RuntimeClass}, {"priority_class", p.PriorityClass}} {
		if wrong := validation.IsDNS1123Subdomain(x.name); x.name != "" && len(wrong) > 0 {
			return refuse(fault.Invalid, "write a name that kubectl get shows", "%s: %.70q: %s", x.field, x.name, Misnamed(wrong))
		}
	}
	for _, x := range []struct {
		field string
		of    map[string]string
		free  bool
	}{{"labels", p.Labels, false}, {"annotations", p.Annotations, true}, {"node_selector", p.NodeSelector, false}} {
		if err := CheckMarks(x.of, x.free); err != nil {
			return refuse(fault.Invalid, fault.Remedy(err), "%s: %w", x.field, err)
		}
	}
	return nil
}

// CheckMarks refuses labels of pods that no cluster takes, and those of ours. free says that
// the values are any text, as those of annotations.
func CheckMarks(all map[string]string, free bool) error {
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if wrong := validation.IsQualifiedName(k); len(wrong) > 0 {
			return fault.New(fault.Invalid, "%.70q: %s", k, Misnamed(wrong)).Advise("write NAME or DOMAIN/NAME")
		}
		if strings.HasPrefix(k, "coxswain.sh/") {
			return fault.New(fault.Invalid, "%s is set by Coxswain itself", k).Advise("take another name")
		}
		if wrong := validation.IsValidLabelValue(all[k]); !free && len(wrong) > 0 {
			return fault.New(fault.Invalid, "%s: %.70q: %s", k, all[k], Misnamed(wrong)).Advise("write letters, digits, -, _ and ., at most 63")
		}
	}
	return nil
}
