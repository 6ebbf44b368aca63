package object

// ConfigMap is a ConfigMap of v1.
type ConfigMap struct {
	Head
	Data       map[string]string `json:"data"`
	BinaryData map[string][]byte `json:"binaryData"` // decoded
}

// Secret is a Secret of v1.
type Secret struct {
	Head
	Type       string            `json:"type"` // empty: Opaque
	Data       map[string][]byte `json:"data"` // decoded
	StringData map[string]string `json:"stringData"`
}

// Values are all values of a Secret by key: those of StringData win.
func (s *Secret) Values() map[string][]byte {
	out := make(map[string][]byte, len(s.Data)+len(s.StringData))
	for k, v := range s.Data {
		out[k] = v
	}
	for k, v := range s.StringData {
		out[k] = []byte(v)
	}
	return out
}

// Values are all values of a ConfigMap by key.
func (c *ConfigMap) Values() map[string][]byte {
	out := make(map[string][]byte, len(c.Data)+len(c.BinaryData))
	for k, v := range c.BinaryData {
		out[k] = v
	}
	for k, v := range c.Data {
		out[k] = []byte(v)
	}
	return out
}

// Namespace is a Namespace of v1.
type Namespace struct{ Head }

// PersistentVolumeClaim is a PersistentVolumeClaim of v1. Its spec is for the cluster: see the node.
type PersistentVolumeClaim struct {
	Head
	Spec ClaimSpec `json:"spec"`
}

// ClaimSpec is the volume that a PersistentVolumeClaim asks for.
type ClaimSpec struct {
	At
	AccessModes      []string `json:"accessModes"`
	StorageClassName string   `json:"storageClassName"`
	VolumeName       string   `json:"volumeName"`
}

// ResourceClaim is a ResourceClaim of resource.k8s.io. Its spec is for the cluster: see the node.
type ResourceClaim struct {
	Head
	Spec Part `json:"spec"`
}

// ResourceClaimTemplate is a ResourceClaimTemplate of resource.k8s.io. Its spec is for the
// cluster: see the node.
type ResourceClaimTemplate struct {
	Head
	Spec Part `json:"spec"`
}

// Part is a part of an object that only the cluster reads.
type Part struct{ At }

// PodGroup is a PodGroup of scheduling.k8s.io.
type PodGroup struct {
	Head
	Spec PodGroupSpec `json:"spec"`
}

// PodGroupSpec says how many pods start together.
type PodGroupSpec struct {
	At
	SchedulingPolicy GroupPolicy `json:"schedulingPolicy"`
}

// GroupPolicy is that of a PodGroup. Gang is nil for one whose pods start alone.
type GroupPolicy struct {
	At
	Basic *Part `json:"basic"`
	Gang  *Gang `json:"gang"`
}

// Gang is how many pods start together at least.
type Gang struct {
	At
	MinCount int32 `json:"minCount"`
}
