package podspec

import (
	"encoding/json"
	"strings"
)

// PodTemplate is a pod template of Kubernetes, by its own names: the fields that mean something on
// engines other than Kubernetes. The others stay in Role.Template.
type PodTemplate struct {
	Metadata Metadata `json:"metadata"`
	Spec     PodSpec  `json:"spec"`
}

// Metadata is that of an object.
type Metadata struct {
	Name        string            `json:"name,omitempty"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodSpec is the spec of a pod.
type PodSpec struct {
	Containers     []Container `json:"containers"`
	InitContainers []Container `json:"initContainers,omitempty"`
	Volumes        []Volume    `json:"volumes,omitempty"`

	RestartPolicy                 string            `json:"restartPolicy,omitempty"` // Always, OnFailure, Never
	ActiveDeadlineSeconds         *int64            `json:"activeDeadlineSeconds,omitempty"`
	TerminationGracePeriodSeconds *int64            `json:"terminationGracePeriodSeconds,omitempty"`
	Hostname                      string            `json:"hostname,omitempty"`
	Subdomain                     string            `json:"subdomain,omitempty"`
	HostNetwork                   bool              `json:"hostNetwork,omitempty"`
	NodeSelector                  map[string]string `json:"nodeSelector,omitempty"`
	ServiceAccountName            string            `json:"serviceAccountName,omitempty"`
	PriorityClassName             string            `json:"priorityClassName,omitempty"`
	ImagePullSecrets              []NameRef         `json:"imagePullSecrets,omitempty"`
	SecurityContext               *SecurityContext  `json:"securityContext,omitempty"`
}

// Container is one of a pod.
type Container struct {
	Name       string          `json:"name"`
	Image      string          `json:"image,omitempty"`
	Command    []string        `json:"command,omitempty"` // nil: the image's entry point
	Args       []string        `json:"args,omitempty"`    // nil: the image's, unless there is Command
	WorkingDir string          `json:"workingDir,omitempty"`
	Env        []ContainerEnv  `json:"env,omitempty"`
	EnvFrom    []EnvFrom       `json:"envFrom,omitempty"`
	Ports      []ContainerPort `json:"ports,omitempty"`
	Resources  Resources       `json:"resources,omitzero"`
	Mounts     []VolumeMount   `json:"volumeMounts,omitempty"`

	ImagePullPolicy string           `json:"imagePullPolicy,omitempty"`
	RestartPolicy   string           `json:"restartPolicy,omitempty"` // of an init container: Always makes it a sidecar
	StartupProbe    *Probe           `json:"startupProbe,omitempty"`
	ReadinessProbe  *Probe           `json:"readinessProbe,omitempty"`
	LivenessProbe   *Probe           `json:"livenessProbe,omitempty"`
	SecurityContext *SecurityContext `json:"securityContext,omitempty"`
	TTY             bool             `json:"tty,omitempty"`
	Stdin           bool             `json:"stdin,omitempty"`
}

// ContainerEnv is a variable of a container: a value, with $(NAME) for variables before it, or where it
// comes from.
type ContainerEnv struct {
	Name  string   `json:"name"`
	Value string   `json:"value,omitempty"`
	From  *EnvRefs `json:"valueFrom,omitempty"`
}

// EnvRefs is where a variable comes from; one of them is there.
type EnvRefs struct {
	Field     *FieldRef    `json:"fieldRef,omitempty"`
	Resource  *ResourceRef `json:"resourceFieldRef,omitempty"`
	ConfigMap *KeyRef      `json:"configMapKeyRef,omitempty"`
	Secret    *KeyRef      `json:"secretKeyRef,omitempty"`
}

// FieldRef names a field of the pod, such as metadata.name.
type FieldRef struct {
	Path string `json:"fieldPath"`
}

// ResourceRef names an amount of a container, such as limits.cpu.
type ResourceRef struct {
	Container string   `json:"containerName,omitempty"`
	Resource  string   `json:"resource"`
	Divisor   Quantity `json:"divisor,omitempty"`
}

// KeyRef names a key of a ConfigMap or Secret.
type KeyRef struct {
	Name     string `json:"name"`
	Key      string `json:"key"`
	Optional bool   `json:"optional,omitempty"`
}

// EnvFrom makes variables of all keys of a ConfigMap or Secret.
type EnvFrom struct {
	Prefix    string   `json:"prefix,omitempty"`
	ConfigMap *NameRef `json:"configMapRef,omitempty"`
	Secret    *NameRef `json:"secretRef,omitempty"`
}

// NameRef names an object.
type NameRef struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"`
}

// ContainerPort is a port on which a container listens.
type ContainerPort struct {
	Name     string `json:"name,omitempty"`
	Port     int    `json:"containerPort"`
	HostPort int    `json:"hostPort,omitempty"`
	Protocol string `json:"protocol,omitempty"`
}

// Resources are what a container asks for; what only Limits has counts as asked for.
type Resources struct {
	Requests map[string]Quantity `json:"requests,omitempty"`
	Limits   map[string]Quantity `json:"limits,omitempty"`
}

// Asked is the amount of a resource that is asked for: the request, else the limit.
func (r *Resources) Asked(name string) (Quantity, bool) {
	if q, ok := r.Requests[name]; ok {
		return q, true
	}
	q, ok := r.Limits[name]
	return q, ok
}

// Quantity is an amount as Kubernetes writes it: "500m", "2Gi", 4.
type Quantity string

// UnmarshalJSON takes text or a number.
func (q *Quantity) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err == nil {
		*q = Quantity(strings.TrimSpace(s))
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	*q = Quantity(n)
	return nil
}

// VolumeMount is where a volume stands in a container.
type VolumeMount struct {
	Name      string `json:"name"`
	MountPath string `json:"mountPath"`
	SubPath   string `json:"subPath,omitempty"`
	ReadOnly  bool   `json:"readOnly,omitempty"`
}

// Volume is one of a pod. Its kind is the one field that is there; kinds that only Kubernetes knows are
// none of these.
type Volume struct {
	Name      string        `json:"name"`
	EmptyDir  *EmptyDir     `json:"emptyDir,omitempty"`
	HostPath  *HostPath     `json:"hostPath,omitempty"`
	ConfigMap *ConfigVolume `json:"configMap,omitempty"`
	Secret    *SecretVolume `json:"secret,omitempty"`
	Projected *Projected    `json:"projected,omitempty"`
	Downward  *Downward     `json:"downwardAPI,omitempty"`
}

// EmptyDir is a directory that lives as long as the pod.
type EmptyDir struct {
	Medium string   `json:"medium,omitempty"` // Memory: in memory; empty: on disk
	Limit  Quantity `json:"sizeLimit,omitempty"`
}

// HostPath is a directory or file of the node.
type HostPath struct {
	Path string `json:"path"`
	Type string `json:"type,omitempty"`
}

// ConfigVolume makes files of a ConfigMap.
type ConfigVolume struct {
	Name     string    `json:"name"`
	Items    []KeyPath `json:"items,omitempty"` // empty: each key is a file
	Mode     *int32    `json:"defaultMode,omitempty"`
	Optional bool      `json:"optional,omitempty"`
}

// SecretVolume makes files of a Secret.
type SecretVolume struct {
	Name     string    `json:"secretName"`
	Items    []KeyPath `json:"items,omitempty"`
	Mode     *int32    `json:"defaultMode,omitempty"`
	Optional bool      `json:"optional,omitempty"`
}

// KeyPath is a key and the relative name of its file.
type KeyPath struct {
	Key  string `json:"key"`
	Path string `json:"path"`
	Mode *int32 `json:"mode,omitempty"`
}

// Projected is several sources in one directory.
type Projected struct {
	Sources []ProjectedSource `json:"sources"`
	Mode    *int32            `json:"defaultMode,omitempty"`
}

// ProjectedSource is one of them.
type ProjectedSource struct {
	ConfigMap *ProjectedKeys `json:"configMap,omitempty"`
	Secret    *ProjectedKeys `json:"secret,omitempty"`
	Downward  *Downward      `json:"downwardAPI,omitempty"`
}

// ProjectedKeys are keys of a ConfigMap or Secret in a projected volume.
type ProjectedKeys struct {
	Name     string    `json:"name"`
	Items    []KeyPath `json:"items,omitempty"`
	Optional bool      `json:"optional,omitempty"`
}

// Downward makes files of fields of the pod.
type Downward struct {
	Items []DownwardItem `json:"items,omitempty"`
	Mode  *int32         `json:"defaultMode,omitempty"`
}

// DownwardItem is one such file.
type DownwardItem struct {
	Path     string       `json:"path"`
	Field    *FieldRef    `json:"fieldRef,omitempty"`
	Resource *ResourceRef `json:"resourceFieldRef,omitempty"`
}

// Probe is a check of a container.
type Probe struct {
	HTTP *HTTPGet   `json:"httpGet,omitempty"`
	TCP  *TCPSocket `json:"tcpSocket,omitempty"`
	Exec *ExecCheck `json:"exec,omitempty"`
	GRPC *GRPCCheck `json:"grpc,omitempty"`

	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty"`
	TimeoutSeconds      int32 `json:"timeoutSeconds,omitempty"`   // 0: 1
	PeriodSeconds       int32 `json:"periodSeconds,omitempty"`    // 0: 10
	SuccessThreshold    int32 `json:"successThreshold,omitempty"` // 0: 1
	FailureThreshold    int32 `json:"failureThreshold,omitempty"` // 0: 3
}

// HTTPGet is a probe by HTTP.
type HTTPGet struct {
	Path   string     `json:"path,omitempty"`
	Port   Target     `json:"port"`
	Host   string     `json:"host,omitempty"`
	Scheme string     `json:"scheme,omitempty"`
	Header []HTTPName `json:"httpHeaders,omitempty"`
}

// HTTPName is a header.
type HTTPName struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// TCPSocket is a probe by a connection.
type TCPSocket struct {
	Port Target `json:"port"`
	Host string `json:"host,omitempty"`
}

// ExecCheck is a probe by a command.
type ExecCheck struct {
	Command []string `json:"command,omitempty"`
}

// GRPCCheck is a probe by gRPC's health protocol.
type GRPCCheck struct {
	Port    int    `json:"port"`
	Service string `json:"service,omitempty"`
}

// Target is a port by number or name.
type Target string

// UnmarshalJSON takes text or a number.
func (t *Target) UnmarshalJSON(data []byte) error { return (*Quantity)(t).UnmarshalJSON(data) }

// SecurityContext is that of a pod or a container.
type SecurityContext struct {
	RunAsUser    *int64        `json:"runAsUser,omitempty"`
	RunAsGroup   *int64        `json:"runAsGroup,omitempty"`
	RunAsNonRoot *bool         `json:"runAsNonRoot,omitempty"`
	Privileged   *bool         `json:"privileged,omitempty"`
	Capabilities *Capabilities `json:"capabilities,omitempty"`
}

// Capabilities are those of Linux that a container has more or fewer.
type Capabilities struct {
	Add  []string `json:"add,omitempty"`
	Drop []string `json:"drop,omitempty"`
}
