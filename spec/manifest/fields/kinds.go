package fields

import (
	"slices"
	"strings"
)

// Use is what a kind is for.
type Use uint8

// The uses.
const (
	Work     Use = iota // becomes a job
	Serving             // becomes a service, alone or with others
	Schedule            // becomes a schedule
	Data                // belongs to the pods of the same file
	Aside               // is taken note of: Coxswain has it anyway, or does not need it
)

// Kind is one kind of object that is read.
type Kind struct {
	Name    string   // "Job"
	Group   string   // "batch"; empty: that of v1
	Version string   // the newest that is read: "v1"
	Also    []string // other versions that are read
	Use     Use
	Note    string // of an Aside: what is done with it

	typeName string
}

// APIVersion is the newest version as a manifest writes it.
func (k *Kind) APIVersion() string { return joinVersion(k.Group, k.Version) }

func joinVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}

// Type is the form of the kind; nil for an Aside that is not looked into.
func (k *Kind) Type() *Type { return types()[k.typeName] }

// Label names the kind where another group has one of the same name: "Job of Volcano".
func (k *Kind) Label() string {
	if k.Group == "batch.volcano.sh" {
		return k.Name + " of Volcano"
	}
	return k.Name
}

// Kinds are the kinds that are read, in the order of the documentation.
var Kinds = []*Kind{
	{Name: "Pod", Version: "v1", Use: Work, typeName: "Pod"},
	{Name: "Job", Group: "batch", Version: "v1", Use: Work, typeName: "Job"},
	{Name: "CronJob", Group: "batch", Version: "v1", Use: Schedule, typeName: "CronJob"},
	{Name: "JobSet", Group: "jobset.x-k8s.io", Version: "v1alpha2", Use: Work, typeName: "JobSet"},
	{Name: "LeaderWorkerSet", Group: "leaderworkerset.x-k8s.io", Version: "v1", Use: Serving, typeName: "LeaderWorkerSet"},
	{Name: "PyTorchJob", Group: "kubeflow.org", Version: "v1", Use: Work, typeName: "PyTorchJob"},
	{Name: "MPIJob", Group: "kubeflow.org", Version: "v2beta1", Use: Work, typeName: "MPIJob"},
	{Name: "MPIJob", Group: "kubeflow.org", Version: "v1", Use: Work, typeName: "MPIJobV1"},
	{Name: "Job", Group: "batch.volcano.sh", Version: "v1alpha1", Use: Work, typeName: "VolcanoJob"},
	{Name: "RayJob", Group: "ray.io", Version: "v1", Also: []string{"v1alpha1"}, Use: Work, typeName: "RayJob"},
	{Name: "RayCluster", Group: "ray.io", Version: "v1", Also: []string{"v1alpha1"}, Use: Work, typeName: "RayCluster"},
	{Name: "Deployment", Group: "apps", Version: "v1", Use: Serving, typeName: "Deployment"},
	{Name: "StatefulSet", Group: "apps", Version: "v1", Use: Serving, typeName: "StatefulSet"},
	{Name: "Service", Version: "v1", Use: Serving, typeName: "Service"},
	{Name: "HorizontalPodAutoscaler", Group: "autoscaling", Version: "v2", Use: Serving, typeName: "HorizontalPodAutoscaler"},
	{Name: "ConfigMap", Version: "v1", Use: Data, typeName: "ConfigMap"},
	{Name: "Secret", Version: "v1", Use: Data, typeName: "Secret"},
	{Name: "PersistentVolumeClaim", Version: "v1", Use: Aside, Note: "create it once with kubectl apply, where the pool is one of Kubernetes", typeName: "PersistentVolumeClaim"},
	{Name: "Namespace", Version: "v1", Use: Aside, Note: "the account and the pool say in which namespace pods run", typeName: "Namespace"},
	{Name: "PodGroup", Group: "scheduling.k8s.io", Version: "v1beta1", Also: []string{"v1alpha3"}, Use: Aside, Note: "all pods of a job begin together without it", typeName: "PodGroup"},
	{Name: "ResourceClaim", Group: "resource.k8s.io", Version: "v1", Also: []string{"v1beta2"}, Use: Aside, Note: "create it once with kubectl apply, where the pool is one of Kubernetes", typeName: "ResourceClaim"},
	{Name: "ResourceClaimTemplate", Group: "resource.k8s.io", Version: "v1", Also: []string{"v1beta2"}, Use: Aside, Note: "create it once with kubectl apply, where the pool is one of Kubernetes", typeName: "ResourceClaimTemplate"},
}

// Find returns the kind of an apiVersion and a kind, nil if it is not read.
func Find(apiVersion, name string) *Kind {
	group, version := splitVersion(apiVersion)
	for _, k := range Kinds {
		if k.Name == name && k.Group == group && (k.Version == version || slices.Contains(k.Also, version)) {
			return k
		}
	}
	return aside(apiVersion, name)
}

func splitVersion(apiVersion string) (group, version string) {
	if i := strings.LastIndexByte(apiVersion, '/'); i >= 0 {
		return apiVersion[:i], apiVersion[i+1:]
	}
	return "", apiVersion
}

// RuleOfAside is the rule of all fields of an Aside.
func RuleOfAside(k *Kind) *Rule {
	return &Rule{Marks: [engineCount]Mark{NoEffect, NoEffect, NoEffect}, Text: "is not made: " + k.Note, Remedy: "keep it in a file of its own"}
}
