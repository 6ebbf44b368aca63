package object

// Pod is a Pod of v1.
type Pod struct {
	Head
	Spec PodSpec `json:"spec"`
}

// PodTemplate is the template of pods, in whatever object it stands.
type PodTemplate struct {
	At
	Metadata Meta    `json:"metadata"`
	Spec     PodSpec `json:"spec"`
}

// PodSpec is what runs in a pod.
type PodSpec struct {
	At
	Containers                    []Container         `json:"containers"`
	InitContainers                []Container         `json:"initContainers"`
	Volumes                       []Volume            `json:"volumes"`
	RestartPolicy                 string              `json:"restartPolicy"` // Always, OnFailure, Never; empty: as the kind says
	TerminationGracePeriodSeconds *int64              `json:"terminationGracePeriodSeconds"`
	ActiveDeadlineSeconds         *int64              `json:"activeDeadlineSeconds"`
	Hostname                      string              `json:"hostname"`
	Subdomain                     string              `json:"subdomain"`
	NodeSelector                  map[string]string   `json:"nodeSelector"`
	NodeName                      string              `json:"nodeName"`
	SchedulerName                 string              `json:"schedulerName"`
	PriorityClassName             string              `json:"priorityClassName"`
	ServiceAccountName            string              `json:"serviceAccountName"`
	ServiceAccount                string              `json:"serviceAccount"` // the old name of ServiceAccountName
	AutomountServiceAccountToken  *bool               `json:"automountServiceAccountToken"`
	ImagePullSecrets              []LocalReference    `json:"imagePullSecrets"`
	HostNetwork                   bool                `json:"hostNetwork"`
	HostPID                       bool                `json:"hostPID"`
	HostIPC                       bool                `json:"hostIPC"`
	HostUsers                     *bool               `json:"hostUsers"`
	ShareProcessNamespace         *bool               `json:"shareProcessNamespace"`
	RuntimeClassName              string              `json:"runtimeClassName"`
	SecurityContext               *PodSecurityContext `json:"securityContext"`
	ResourceClaims                []PodResourceClaim  `json:"resourceClaims"`
	SchedulingGroup               *PodSchedulingGroup `json:"schedulingGroup"`
	Tolerations                   []Toleration        `json:"tolerations"`
	Resources                     *Resources          `json:"resources"`
	SchedulingGates               []NamedGate         `json:"schedulingGates"`
}

// NamedGate is a scheduling gate.
type NamedGate struct {
	At
	Name string `json:"name"`
}

// LocalReference names an object of the same namespace.
type LocalReference struct {
	At
	Name string `json:"name"`
}

// PodSchedulingGroup names the PodGroup of a pod.
type PodSchedulingGroup struct {
	At
	PodGroupName string `json:"podGroupName"`
}

// PodResourceClaim is a claim of devices that containers refer to.
type PodResourceClaim struct {
	At
	Name                      string `json:"name"`
	ResourceClaimName         string `json:"resourceClaimName"`
	ResourceClaimTemplateName string `json:"resourceClaimTemplateName"`
}

// Toleration lets pods onto nodes with a taint.
type Toleration struct {
	At
	Key      string `json:"key"`
	Operator string `json:"operator"` // Exists, Equal
	Value    string `json:"value"`
	Effect   string `json:"effect"`
}

// PodSecurityContext is the user of all containers of a pod.
type PodSecurityContext struct {
	At
	RunAsUser          *int64       `json:"runAsUser"`
	RunAsGroup         *int64       `json:"runAsGroup"`
	RunAsNonRoot       *bool        `json:"runAsNonRoot"`
	SupplementalGroups []int64      `json:"supplementalGroups"`
	FSGroup            *int64       `json:"fsGroup"`
	Sysctls            []NamedValue `json:"sysctls"`
	SeccompProfile     *Profile     `json:"seccompProfile"`
	AppArmorProfile    *Profile     `json:"appArmorProfile"`
}

// NamedValue is a name with a text.
type NamedValue struct {
	At
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Profile is a profile of seccomp or AppArmor.
type Profile struct {
	At
	Type             string `json:"type"` // RuntimeDefault, Unconfined, Localhost
	LocalhostProfile string `json:"localhostProfile"`
}

// Container is a container of a pod.
type Container struct {
	At
	Name            string           `json:"name"`
	Image           string           `json:"image"`
	Command         []string         `json:"command"`
	Args            []string         `json:"args"`
	WorkingDir      string           `json:"workingDir"`
	Env             []EnvVar         `json:"env"`
	EnvFrom         []EnvFrom        `json:"envFrom"`
	Ports           []ContainerPort  `json:"ports"`
	Resources       Resources        `json:"resources"`
	VolumeMounts    []VolumeMount    `json:"volumeMounts"`
	VolumeDevices   []VolumeDevice   `json:"volumeDevices"`
	ReadinessProbe  *Probe           `json:"readinessProbe"`
	LivenessProbe   *Probe           `json:"livenessProbe"`
	StartupProbe    *Probe           `json:"startupProbe"`
	Lifecycle       *Lifecycle       `json:"lifecycle"`
	RestartPolicy   string           `json:"restartPolicy"` // Always in an init container: a sidecar
	ImagePullPolicy string           `json:"imagePullPolicy"`
	SecurityContext *SecurityContext `json:"securityContext"`
	Stdin           bool             `json:"stdin"`
	TTY             bool             `json:"tty"`
}

// EnvVar is one variable.
type EnvVar struct {
	At
	Name      string     `json:"name"`
	Value     string     `json:"value"`
	ValueFrom *EnvSource `json:"valueFrom"`
}

// EnvSource is where the value of a variable comes from. One of its fields is not nil.
type EnvSource struct {
	At
	FieldRef         *FieldRef         `json:"fieldRef"`
	ResourceFieldRef *ResourceFieldRef `json:"resourceFieldRef"`
	ConfigMapKeyRef  *KeyRef           `json:"configMapKeyRef"`
	SecretKeyRef     *KeyRef           `json:"secretKeyRef"`
	FileKeyRef       *FileKeyRef       `json:"fileKeyRef"`
}

// FieldRef is a field of the pod: metadata.name, metadata.labels['x'], status.podIP …
type FieldRef struct {
	At
	FieldPath  string `json:"fieldPath"`
	APIVersion string `json:"apiVersion"`
}

// ResourceFieldRef is an amount that a container asks for: limits.memory, in units of Divisor.
type ResourceFieldRef struct {
	At
	ContainerName string   `json:"containerName"`
	Resource      string   `json:"resource"`
	Divisor       Quantity `json:"divisor"`
}

// KeyRef is a key of a ConfigMap or of a Secret.
type KeyRef struct {
	At
	Name     string `json:"name"`
	Key      string `json:"key"`
	Optional bool   `json:"optional"`
}

// FileKeyRef is a key of a file of a volume.
type FileKeyRef struct {
	At
	VolumeName string `json:"volumeName"`
	Path       string `json:"path"`
	Key        string `json:"key"`
}

// EnvFrom takes all keys of a ConfigMap or of a Secret as variables.
type EnvFrom struct {
	At
	Prefix       string     `json:"prefix"`
	ConfigMapRef *SourceRef `json:"configMapRef"`
	SecretRef    *SourceRef `json:"secretRef"`
}

// SourceRef names a ConfigMap or a Secret.
type SourceRef struct {
	At
	Name     string `json:"name"`
	Optional bool   `json:"optional"`
}

// ContainerPort is a port at which a container listens.
type ContainerPort struct {
	At
	Name          string `json:"name"`
	ContainerPort int32  `json:"containerPort"`
	Protocol      string `json:"protocol"` // TCP, UDP, SCTP; empty: TCP
	HostPort      int32  `json:"hostPort"`
	HostIP        string `json:"hostIP"`
}

// Resources are the amounts that a container asks for. Limits fill requests that are not given.
type Resources struct {
	At
	Limits   map[string]Quantity `json:"limits"`
	Requests map[string]Quantity `json:"requests"`
	Claims   []ContainerClaim    `json:"claims"`
}

// Wanted is the amount that is asked for of a resource: the request, else the limit. The path
// is that of the field which says so.
func (r *Resources) Wanted(name string) (amount Quantity, path string) {
	if q, ok := r.Requests[name]; ok {
		return q, r.Under("requests") + "[" + name + "]"
	}
	if q, ok := r.Limits[name]; ok {
		return q, r.Under("limits") + "[" + name + "]"
	}
	return "", ""
}

// ContainerClaim is a claim of the pod that a container uses.
type ContainerClaim struct {
	At
	Name    string `json:"name"`
	Request string `json:"request"`
}

// Probe asks a container how it is.
type Probe struct {
	At
	Exec                *Exec   `json:"exec"`
	HTTPGet             *HTTP   `json:"httpGet"`
	TCPSocket           *Socket `json:"tcpSocket"`
	GRPC                *GRPC   `json:"grpc"`
	InitialDelaySeconds int32   `json:"initialDelaySeconds"`
	PeriodSeconds       *int32  `json:"periodSeconds"`    // nil: 10
	TimeoutSeconds      *int32  `json:"timeoutSeconds"`   // nil: 1
	SuccessThreshold    *int32  `json:"successThreshold"` // nil: 1
	FailureThreshold    *int32  `json:"failureThreshold"` // nil: 3
}

// Exec is a command in a container.
type Exec struct {
	At
	Command []string `json:"command"`
}

// HTTP is a request.
type HTTP struct {
	At
	Path        string       `json:"path"`
	Port        IntOrString  `json:"port"`
	Host        string       `json:"host"`
	Scheme      string       `json:"scheme"` // HTTP, HTTPS; empty: HTTP
	HTTPHeaders []NamedValue `json:"httpHeaders"`
}

// Socket is a connection.
type Socket struct {
	At
	Port IntOrString `json:"port"`
	Host string      `json:"host"`
}

// GRPC is a health check over gRPC.
type GRPC struct {
	At
	Port    int32  `json:"port"`
	Service string `json:"service"`
}

// Lifecycle has the commands around the life of a container.
type Lifecycle struct {
	At
	PostStart *Handler `json:"postStart"`
	PreStop   *Handler `json:"preStop"`
}

// Handler is what a Lifecycle does.
type Handler struct {
	At
	Exec      *Exec   `json:"exec"`
	HTTPGet   *HTTP   `json:"httpGet"`
	TCPSocket *Socket `json:"tcpSocket"`
	Sleep     *Sleep  `json:"sleep"`
}

// Sleep waits.
type Sleep struct {
	Seconds int64 `json:"seconds"`
}

// SecurityContext is the user and the rights of a container.
type SecurityContext struct {
	At
	RunAsUser                *int64        `json:"runAsUser"`
	RunAsGroup               *int64        `json:"runAsGroup"`
	RunAsNonRoot             *bool         `json:"runAsNonRoot"`
	Privileged               bool          `json:"privileged"`
	AllowPrivilegeEscalation *bool         `json:"allowPrivilegeEscalation"`
	ReadOnlyRootFilesystem   bool          `json:"readOnlyRootFilesystem"`
	Capabilities             *Capabilities `json:"capabilities"`
	ProcMount                string        `json:"procMount"`
	SeccompProfile           *Profile      `json:"seccompProfile"`
	AppArmorProfile          *Profile      `json:"appArmorProfile"`
}

// Capabilities are rights of the kernel.
type Capabilities struct {
	At
	Add  []string `json:"add"`
	Drop []string `json:"drop"`
}
