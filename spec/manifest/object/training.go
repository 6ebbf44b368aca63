package object

// PyTorchJob is a PyTorchJob of kubeflow.org/v1.
type PyTorchJob struct {
	Head
	Spec PyTorchJobSpec `json:"spec"`
}

// PyTorchJobSpec are the replicas of a PyTorchJob.
type PyTorchJobSpec struct {
	At
	Replicas      PyTorchReplicas `json:"pytorchReplicaSpecs"`
	RunPolicy     RunPolicy       `json:"runPolicy"`
	ElasticPolicy *ElasticPolicy  `json:"elasticPolicy"`
	NprocPerNode  string          `json:"nprocPerNode"` // auto, cpu, gpu or a number
}

// PyTorchReplicas are the two kinds of pods of a PyTorchJob; nil: none of it.
type PyTorchReplicas struct {
	At
	Master *Replica `json:"Master"`
	Worker *Replica `json:"Worker"`
}

// Replica are pods of one kind.
type Replica struct {
	At
	Replicas      *int32      `json:"replicas"` // nil: 1
	Template      PodTemplate `json:"template"`
	RestartPolicy string      `json:"restartPolicy"` // Always, OnFailure, Never, ExitCode; empty: as the kind says
}

// RunPolicy are the limits of a job of Kubeflow.
type RunPolicy struct {
	At
	TTLSecondsAfterFinished *int32            `json:"ttlSecondsAfterFinished"`
	ActiveDeadlineSeconds   *int64            `json:"activeDeadlineSeconds"`
	BackoffLimit            *int32            `json:"backoffLimit"`
	Suspend                 bool              `json:"suspend"`
	SchedulingPolicy        *SchedulingPolicy `json:"schedulingPolicy"`
}

// SchedulingPolicy is the queue of a job of Kubeflow.
type SchedulingPolicy struct {
	At
	Queue string `json:"queue"`
}

// ElasticPolicy is how torchrun finds its workers.
type ElasticPolicy struct {
	At
	MinReplicas  *int32       `json:"minReplicas"`
	MaxReplicas  *int32       `json:"maxReplicas"`
	RDZVBackend  string       `json:"rdzvBackend"` // c10d, etcd, etcd-v2; empty: c10d
	RDZVPort     int32        `json:"rdzvPort"`
	RDZVHost     string       `json:"rdzvHost"`
	RDZVID       string       `json:"rdzvId"`
	RDZVConf     []RDZVOption `json:"rdzvConf"`
	Standalone   bool         `json:"standalone"`
	NProcPerNode *int32       `json:"nProcPerNode"`
	MaxRestarts  *int32       `json:"maxRestarts"`
}

// RDZVOption is one option of the rendezvous.
type RDZVOption struct {
	At
	Key   string `json:"key"`
	Value string `json:"value"`
}

// MPIJob is an MPIJob of kubeflow.org/v2beta1, or of v1.
type MPIJob struct {
	Head
	Spec MPIJobSpec `json:"spec"`
}

// MPIJobSpec are the launcher and the workers of an MPIJob.
type MPIJobSpec struct {
	At
	Replicas            MPIReplicas `json:"mpiReplicaSpecs"`
	SlotsPerWorker      *int32      `json:"slotsPerWorker"` // nil: 1
	RunLauncherAsWorker bool        `json:"runLauncherAsWorker"`
	RunPolicy           RunPolicy   `json:"runPolicy"`
	MPIImplementation   string      `json:"mpiImplementation"` // OpenMPI, Intel, MPICH; empty: OpenMPI
	MainContainer       string      `json:"mainContainer"`     // of v1; empty: the first
}

// MPIReplicas are the two kinds of pods of an MPIJob; nil: none of it.
type MPIReplicas struct {
	At
	Launcher *Replica `json:"Launcher"`
	Worker   *Replica `json:"Worker"`
}

// VolcanoJob is a Job of batch.volcano.sh/v1alpha1.
type VolcanoJob struct {
	Head
	Spec VolcanoJobSpec `json:"spec"`
}

// VolcanoJobSpec are the tasks of a job of Volcano.
type VolcanoJobSpec struct {
	At
	Tasks                   []VolcanoTask       `json:"tasks"`
	MinAvailable            *int32              `json:"minAvailable"`
	Queue                   string              `json:"queue"`
	MaxRetry                *int32              `json:"maxRetry"` // nil: 3
	TTLSecondsAfterFinished *int32              `json:"ttlSecondsAfterFinished"`
	Policies                []VolcanoPolicy     `json:"policies"`
	Plugins                 map[string][]string `json:"plugins"` // by name, with its arguments
}

// VolcanoTask are pods of one kind.
type VolcanoTask struct {
	At
	Name         string          `json:"name"`
	Replicas     *int32          `json:"replicas"` // nil: 1
	MinAvailable *int32          `json:"minAvailable"`
	Template     PodTemplate     `json:"template"`
	Policies     []VolcanoPolicy `json:"policies"`
	MaxRetry     *int32          `json:"maxRetry"`
}

// VolcanoPolicy is what an event leads to.
type VolcanoPolicy struct {
	At
	Action   string   `json:"action"`
	Event    string   `json:"event"`
	Events   []string `json:"events"`
	ExitCode *int32   `json:"exitCode"`
}
