package object

// RayJob is a RayJob of ray.io/v1.
type RayJob struct {
	Head
	Spec RayJobSpec `json:"spec"`
}

// RayJobSpec is the command of a RayJob and its cluster.
type RayJobSpec struct {
	At
	Entrypoint              string          `json:"entrypoint"`
	RayClusterSpec          *RayClusterSpec `json:"rayClusterSpec"`
	RuntimeEnvYAML          string          `json:"runtimeEnvYAML"`
	ActiveDeadlineSeconds   *int64          `json:"activeDeadlineSeconds"`
	BackoffLimit            *int32          `json:"backoffLimit"` // nil: 0
	TTLSecondsAfterFinished *int32          `json:"ttlSecondsAfterFinished"`
	Suspend                 bool            `json:"suspend"`
}

// RayCluster is a RayCluster of ray.io/v1.
type RayCluster struct {
	Head
	Spec RayClusterSpec `json:"spec"`
}

// RayClusterSpec are the head and the workers of a cluster of Ray.
type RayClusterSpec struct {
	At
	HeadGroup    RayHead     `json:"headGroupSpec"`
	WorkerGroups []RayWorker `json:"workerGroupSpecs"`
	Suspend      bool        `json:"suspend"`
}

// RayHead is the head of a cluster of Ray.
type RayHead struct {
	At
	Template       PodTemplate       `json:"template"`
	RayStartParams map[string]string `json:"rayStartParams"`
	Resources      map[string]string `json:"resources"`
	Labels         map[string]string `json:"labels"`
}

// RayWorker is a group of workers of a cluster of Ray.
type RayWorker struct {
	At
	GroupName      string            `json:"groupName"`
	Replicas       *int32            `json:"replicas"` // nil: MinReplicas, or 0
	MinReplicas    *int32            `json:"minReplicas"`
	NumOfHosts     *int32            `json:"numOfHosts"` // pods of one replica; nil: 1
	Template       PodTemplate       `json:"template"`
	RayStartParams map[string]string `json:"rayStartParams"`
	Resources      map[string]string `json:"resources"`
	Labels         map[string]string `json:"labels"`
	Suspend        bool              `json:"suspend"`
}
